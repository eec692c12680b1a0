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
"""The namespace of a reference, by default that of the object with the reference."""
FLAG = Flag()
PORT = Whole(1, 65535, codes.BAD_PORT, "a port")
NAMED_PORT = Whole(1, 65535, codes.BAD_PORT, "a port", or_name=True)


@lru_cache(maxsize=4096)
def usual_address(address: str) -> str | None:
    """Return an IP address in its canonical spelling, or None."""
    try:
        return str(parse_address(address))
    except ValueError:
        return None


def _address_problems(address: str) -> Iterator[Problem]:
    """Yield the problems of an address; Kubernetes treats the empty string as absent."""
    if address and usual_address(address) is None:
        yield Problem(codes.BAD_ADDRESS, f"`{address}` is not an IP address", "write an IPv4 or IPv6 address")


ADDRESS: Text[None] = Text("an IP address", Demand(_address_problems), make=usual_address)


def given(shape: AnyShape, into: str | None = None) -> Of:
    """Return a field in which an empty text counts as absent."""
    return Field(shape, into=into, blank=True)


def record(
    fields: Fields,
    *rules: Demand[Mapping[str, object]],
    make: Callable[..., object] | None = None,
    shorthand: str | None = None,
) -> Record[None]:
    """Return the shape of a mapping, in which only these fields are read. A plain shape means an optional field.

    `make` makes an object of the fields; without it, they become fields of the outer mapping.
    """
    as_fields = {name: of if isinstance(of, Field) else Field(of) for name, of in fields.items()}
    return Record("a mapping", as_fields, rules, shorthand=shorthand, make=make)


def each(
    fields: Fields,
    *rules: Demand[Mapping[str, object]],
    make: Callable[..., object] | None = None,
    together: Callable[[tuple[Any, ...]], object] | None = None,
) -> ListOf[None]:
    """Return the shape of a list of such mappings; `together` gets the results of `make` for all items."""
    return ListOf(record(fields, *rules, make=make), make=together)


def first_of_each(key: Callable[[Any], str]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that keeps the first item of each key: Gateway API ignores the others."""

    def first(items: tuple[Any, ...]) -> tuple[Any, ...]:
        kept: dict[str, Any] = {}
        for item in items:
            kept.setdefault(key(item), item)
        return tuple(kept.values())

    return first
