"""Possible requests at an entrance: all requests that clients can send, under any policy.

A proxy that reads HTTP refuses other bytes, and every request has a method, a host and a path that begins with a slash.
If rules test whether a request is HTTP, their proxy also accepts other bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eastgate.ir import ALWAYS, Is, Layer, Not, OneOf, Predicate, Prefix, Present, all_of, any_of
from eastgate.ir.attributes import APPLICATION, AUTHORITY, HOST, METHOD, TARGET, URL_PATH, Attribute, AttributeKind
from eastgate.reach.destinations import Entrance

_HTTP = Is(METHOD, Present())
_APPLICATION_IS_HTTP = Is(APPLICATION, OneOf(frozenset({"http"})))


def possible_at(entrance: Entrance) -> Predicate:
    """Return a predicate that every request at an entrance meets, on the attributes that its layers read."""
    return possible_requests(entrance.layers, hides_http=entrance.hides_http)


def possible_requests(among: Iterable[Layer], *, hides_http: bool = False, only_bytes: bool = False) -> Predicate:
    """Return a predicate that every request meets, on the attributes that layers read. `only_bytes`: no HTTP here."""
    layers = {id(layer): layer for layer in among}.values()
    looked_at: frozenset[Attribute] = frozenset().union(*(layer.looks_at for layer in layers))
    if only_bytes:
        absent = (Not(Is(attribute, Present())) for attribute in sorted(looked_at) if attribute.needs_http)
        return all_of((*absent, *([Not(_APPLICATION_IS_HTTP)] if APPLICATION in looked_at else [])))
    if APPLICATION in looked_at:
        return _http_or_bytes(looked_at, _APPLICATION_IS_HTTP)
    if not any(attribute.needs_http for attribute in looked_at) or hides_http:
        return ALWAYS
    demands = list(_of_http(looked_at))
    if not any(atom == _HTTP for layer in layers for atom in layer.atoms(observed=False)):
        return all_of((_HTTP, *demands))
    return _http_or_bytes(looked_at)


def _http_or_bytes(looked_at: frozenset[Attribute], *http_tests: Predicate) -> Predicate:
    """Return the predicate that all HTTP attributes are present, or none. `http_tests`: the tests for HTTP in rules."""
    absent = (Not(Is(attribute, Present())) for attribute in sorted(looked_at) if _is_of_http(attribute))
    bytes_alone = (Not(_HTTP), *map(Not, http_tests), *absent)
    return any_of((all_of((_HTTP, *http_tests, *_of_http(looked_at))), all_of(bytes_alone)))


def _is_of_http(attribute: Attribute) -> bool:
    return attribute in (HOST, AUTHORITY) or attribute.kind is AttributeKind.PATH or attribute in (TARGET, URL_PATH)


def _of_http(looked_at: frozenset[Attribute]) -> Iterator[Predicate]:
    for path in sorted(looked_at):
        if _is_of_http(path) and path not in (HOST, AUTHORITY):
            server = all_of((Is(path, OneOf(frozenset({"*"}))), Is(METHOD, OneOf(frozenset({"OPTIONS"})))))
            yield any_of((Is(path, Prefix("/")), server))
    if HOST in looked_at:
        yield Is(HOST, Present())
