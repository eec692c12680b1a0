"""Shapes that Kubernetes' own objects have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from eastgate.cluster import codes
from eastgate.ir.addresses import parse_address
from eastgate.reading.manifests.shapes.demands import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Field, Flag, ListOf, MapOf, Record, Shape, Text, Whole

AnyShape: TypeAlias = Shape[None]
Of: TypeAlias = Field[None]

TEXT: Text[None] = Text()
TEXTS: ListOf[None] = ListOf(TEXT)
STRINGS: MapOf[None] = MapOf(TEXT)
"""Labels, annotations, the selector of a Service."""
FLAG = Flag()
PORT = Whole(1, 65535, codes.BAD_PORT, "a port")
NAMED_PORT = Whole(1, 65535, codes.BAD_PORT, "a port", or_name=True)


@lru_cache(maxsize=4096)
def usual_address(address: str) -> str | None:
    """Return an IP address in its usual spelling; None where it is none."""
    try:
        return str(parse_address(address))
    except ValueError:
        return None


def _address_problems(address: str) -> Iterator[Problem]:
    """Yield what is wrong with an address; to Kubernetes the empty string is as good as absent."""
    if address and usual_address(address) is None:
        yield Problem(codes.BAD_ADDRESS, f"`{address}` is not an IP address", "write an IPv4 or IPv6 address")


ADDRESS: Text[None] = Text("an IP address", Demand(_address_problems))


def record(
    fields: Mapping[str, Of | AnyShape], *rules: Demand[Mapping[str, object]], shorthand: str | None = None
) -> Record[None]:
    """Return the shape of a mapping of which only these fields are read. A mere shape is a field that may be absent."""
    as_fields = {name: of if isinstance(of, Field) else Field(of) for name, of in fields.items()}
    return Record("a mapping", as_fields, rules, shorthand=shorthand)


def each(fields: Mapping[str, Of | AnyShape], *rules: Demand[Mapping[str, object]]) -> ListOf[None]:
    """Return the shape of a list of such mappings."""
    return ListOf(record(fields, *rules))
