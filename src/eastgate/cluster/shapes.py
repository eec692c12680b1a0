"""Shapes that Kubernetes' own objects have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from eastgate.cluster import codes
from eastgate.ir.addresses import parse_address
from eastgate.reading.manifests.shapes.constraints import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Field, Flag, ListOf, MapOf, Record, Shape, Text, Whole

AnyShape: TypeAlias = Shape[None]
Of: TypeAlias = Field[None]
Fields: TypeAlias = Mapping[str, Of | AnyShape]

TEXT: Text[None] = Text()
TEXTS: ListOf[None] = ListOf(TEXT)
STRINGS: MapOf[None] = MapOf(TEXT)
"""Labels, annotations, the selector of a Service."""
HOME: Of = Field(TEXT, home=True, blank=True)
"""The namespace of a reference, by default that of the object that refers."""
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


ADDRESS: Text[None] = Text("an IP address", Demand(_address_problems), make=usual_address)


def given(shape: AnyShape, into: str | None = None) -> Of:
    """Return a field of which an empty text is as good as absent."""
    return Field(shape, into=into, blank=True)


def record(
    fields: Fields,
    *rules: Demand[Mapping[str, object]],
    make: Callable[..., object] | None = None,
    shorthand: str | None = None,
) -> Record[None]:
    """Return the shape of a mapping of which only these fields are read. A mere shape is a field that may be absent.

    `make` makes an object of it; without it, the fields are those of the mapping around it.
    """
    as_fields = {name: of if isinstance(of, Field) else Field(of) for name, of in fields.items()}
    return Record("a mapping", as_fields, rules, shorthand=shorthand, make=make)


def each(
    fields: Fields,
    *rules: Demand[Mapping[str, object]],
    make: Callable[..., object] | None = None,
    together: Callable[[tuple[Any, ...]], object] | None = None,
) -> ListOf[None]:
    """Return the shape of a list of such mappings; `together` makes something of all that `make` made."""
    return ListOf(record(fields, *rules, make=make), make=together)


def first_of_each(key: Callable[[Any], str]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return what keeps the first of the items of one key: to Gateway API no other counts."""

    def first(items: tuple[Any, ...]) -> tuple[Any, ...]:
        kept: dict[str, Any] = {}
        for item in items:
            kept.setdefault(key(item), item)
        return tuple(kept.values())

    return first
