"""Requests that there can be at an entrance: what clients can send, whatever policies say.

Where a proxy reads HTTP, bytes that are none do not get through, and every request has a method, a host and a path that
begins with a slash. Rules that ask whether it is HTTP at all are of proxies that let other bytes through too.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.ir import ALWAYS, Is, Not, OneOf, Predicate, Prefix, Present, all_of, any_of
from eastgate.ir.attributes import HOST, METHOD, PATH, SENT_PATH, TARGET, URL_PATH, Attribute
from eastgate.reach.destinations import Entrance

__all__ = ["possible_at"]

_HTTP = Is(METHOD, Present())


def possible_at(entrance: Entrance) -> Predicate:
    """Return what every request at an entrance meets, as far as somebody looks at it there."""
    layers = {id(layer): layer for layer in entrance.layers}.values()
    looked_at: frozenset[Attribute] = frozenset().union(*(layer.looks_at for layer in layers))
    if not any(attribute.needs_http for attribute in looked_at) or entrance.hides_http:
        return ALWAYS
    demands = list(_of_http(looked_at))
    if not any(atom == _HTTP for layer in layers for atom in layer.atoms(observed=False)):
        return all_of((_HTTP, *demands))
    absent = (Not(Is(attribute, Present())) for attribute in sorted(looked_at) if attribute in (HOST, *_PATHS))
    return any_of((all_of((_HTTP, *demands)), all_of((Not(_HTTP), *absent))))


_PATHS = (PATH, SENT_PATH, TARGET, URL_PATH)


def _of_http(looked_at: frozenset[Attribute]) -> Iterator[Predicate]:
    for path in _PATHS:
        if path in looked_at:
            server = all_of((Is(path, OneOf(frozenset({"*"}))), Is(METHOD, OneOf(frozenset({"OPTIONS"})))))
            yield any_of((Is(path, Prefix("/")), server))
    if HOST in looked_at:
        yield Is(HOST, Present())
