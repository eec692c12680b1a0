"""Requests that there can be at an entrance: what clients can send, whatever policies say.

Where a proxy reads HTTP, bytes that are none do not get through, and every request has a method, a host and a path that
begins with a slash. Rules that ask whether it is HTTP at all are of proxies that let other bytes through too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eastgate.ir import ALWAYS, Is, Layer, Not, OneOf, Predicate, Prefix, Present, all_of, any_of
from eastgate.ir.attributes import APPLICATION, AUTHORITY, HOST, METHOD, TARGET, URL_PATH, Attribute, AttributeKind
from eastgate.reach.destinations import Entrance

_HTTP = Is(METHOD, Present())
_SAYS_HTTP = Is(APPLICATION, OneOf(frozenset({"http"})))


def possible_at(entrance: Entrance) -> Predicate:
    """Return what every request at an entrance meets, as far as somebody looks at it there."""
    return possible_requests(entrance.layers, hides_http=entrance.hides_http)


def possible_requests(among: Iterable[Layer], *, hides_http: bool = False, only_bytes: bool = False) -> Predicate:
    """Return what every request meets, as far as layers look at it. `only_bytes`: the port speaks no HTTP."""
    layers = {id(layer): layer for layer in among}.values()
    looked_at: frozenset[Attribute] = frozenset().union(*(layer.looks_at for layer in layers))
    if only_bytes:
        absent = (Not(Is(attribute, Present())) for attribute in sorted(looked_at) if attribute.needs_http)
        return all_of((*absent, *([Not(_SAYS_HTTP)] if APPLICATION in looked_at else [])))
    if APPLICATION in looked_at:
        return _either(looked_at, _SAYS_HTTP)
    if not any(attribute.needs_http for attribute in looked_at) or hides_http:
        return ALWAYS
    demands = list(_of_http(looked_at))
    if not any(atom == _HTTP for layer in layers for atom in layer.atoms(observed=False)):
        return all_of((_HTTP, *demands))
    return _either(looked_at)


def _either(looked_at: frozenset[Attribute], *said: Predicate) -> Predicate:
    """Return that a request is HTTP with all that belongs to it, or none of it; `said`: how rules ask for HTTP."""
    absent = (Not(Is(attribute, Present())) for attribute in sorted(looked_at) if _is_of_http(attribute))
    bytes_alone = (Not(_HTTP), *map(Not, said), *absent)
    return any_of((all_of((_HTTP, *said, *_of_http(looked_at))), all_of(bytes_alone)))


def _is_of_http(attribute: Attribute) -> bool:
    return attribute in (HOST, AUTHORITY) or attribute.kind is AttributeKind.PATH or attribute in (TARGET, URL_PATH)


def _of_http(looked_at: frozenset[Attribute]) -> Iterator[Predicate]:
    for path in sorted(looked_at):
        if _is_of_http(path) and path not in (HOST, AUTHORITY):
            server = all_of((Is(path, OneOf(frozenset({"*"}))), Is(METHOD, OneOf(frozenset({"OPTIONS"})))))
            yield any_of((Is(path, Prefix("/")), server))
    if HOST in looked_at:
        yield Is(HOST, Present())
