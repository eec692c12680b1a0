"""Tests of hosts and of names in TLS handshakes, as Gateway API's hostnames mean them."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.gateway.hostnames import Host, comparable, specificity
from eastgate.ir import ALWAYS, Is, Not, OneOf, Predicate, Suffix, all_of, any_of
from eastgate.ir.attributes import Attribute

__all__ = ["chooses", "means"]


def means(attribute: Attribute, hostname: Host) -> Predicate:
    """Return the test that a host is one that the hostname means."""
    if hostname is None:
        return ALWAYS
    if hostname.startswith("*."):
        return Is(attribute, Suffix(hostname[1:]))
    return Is(attribute, OneOf(frozenset({hostname})))


def chooses(attribute: Attribute, hostname: Host, among: Iterable[Host]) -> Predicate:
    """Return the test that of these hostnames this is the most specific one that means a host."""
    own = comparable(hostname)
    better = [name for name in map(comparable, among) if specificity(name) > specificity(own)]
    others = any_of([means(attribute, name) for name in better])
    return all_of([means(attribute, own), *([Not(others)] if better else [])])
