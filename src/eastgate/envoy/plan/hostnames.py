"""Tests of hosts and of names in TLS handshakes, as Gateway API's hostnames mean them."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.cluster.routing.hostnames import Host, comparable, named_by, specificity
from eastgate.ir import Not, Predicate, all_of, any_of
from eastgate.ir.attributes import Attribute


def chooses(attribute: Attribute, hostname: Host, among: Iterable[Host]) -> Predicate:
    """Return the test that of these hostnames this is the most specific one that means a host."""
    own = comparable(hostname)
    better = [name for name in map(comparable, among) if specificity(name) > specificity(own)]
    others = any_of([named_by(name, attribute) for name in better])
    return all_of([named_by(own, attribute), *([Not(others)] if better else [])])
