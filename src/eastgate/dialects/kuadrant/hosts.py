"""Hosts with wildcards: comparisons, and predicates for requests. Wildcards match whole labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eastgate.basics.regexes import regex
from eastgate.ir import ALWAYS, And, Is, Not, OneOf, Or, Predicate, Suffix
from eastgate.ir.attributes import HOST, SNI, Attribute

ANY = "*"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
HOST_PATTERN = rf"(\*\.)?{_LABEL}(\.{_LABEL})*"
_HOST = regex(HOST_PATTERN)


def host_problem(host: str) -> tuple[str, str] | None:
    """Return why a text is not a host, and what to write instead."""
    if host == ANY or _HOST.fullmatch(host):
        return None
    bare = _PORT.sub("", _SCHEME.sub("", host.lower()).split("/")[0]).rstrip(".")
    way_out = f"write {bare}" if _HOST.fullmatch(bare) else "write a name such as www.example.com or *.example.com"
    return next((reason for reason, has in _MISTAKES if has(host)), "it is not a DNS name"), way_out


def index_host_problem(host: str) -> tuple[str, str] | None:
    """Return why a text is not a host of an AuthConfig, and what to write instead.

    It may have a port and upper-case letters.
    """
    return host_problem(_NUMBER.sub("", host).lower())


_NUMBER = regex(r":[0-9]{1,5}$")
_SCHEME = regex(r"^[a-z]+://")
_PORT = regex(r":\d*$")
_MISTAKES: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("it is empty", lambda host: not host),
    ("it is a URL", lambda host: "://" in host),
    ("it has a path", lambda host: "/" in host),
    ("it has a port", _PORT.search),
    ("`*` is allowed for its first labels only", lambda host: "*" in host),
    ("it ends with a dot", lambda host: host.endswith(".")),
    ("it has upper-case letters", lambda host: _HOST.fullmatch(host.lower())),
)


def is_inside(inner: str, outer: str) -> bool:
    """Return whether `outer` covers all hosts of `inner`; `*.foo.com` covers neither evilfoo.com nor foo.com."""
    if outer == ANY or inner == outer:
        return True
    if inner == ANY or not outer.startswith("*."):
        return False
    return inner.removeprefix("*").endswith(outer[1:]) and inner != outer[2:]


def matches(host: str, attribute: Attribute = HOST) -> Predicate:
    """Match requests to a host."""
    if host == ANY:
        return ALWAYS
    return Is(attribute, Suffix(host[1:]) if host.startswith("*.") else OneOf(frozenset({host})))


def selects(hosts: Iterable[str]) -> Predicate:
    """Match requests to ANY of these hosts. The Host header or the SNI of the connection is enough."""
    chosen = list(hosts)
    if ANY in chosen:
        return ALWAYS
    return Or(tuple(matches(host, attribute) for attribute in (HOST, SNI) for host in chosen))


def nearest(hosts: Iterable[str], others: Iterable[str]) -> Predicate:
    """Match requests to ANY of these hosts for which no other host is a closer match."""
    rivals = list(others)
    parts: list[Predicate] = []
    for host in hosts:
        closer = tuple(matches(rival) for rival in rivals if rival != host and is_inside(rival, host))
        parts.append(And((matches(host), Not(Or(closer)))) if closer else matches(host))
    return parts[0] if len(parts) == 1 else Or(tuple(parts))
