"""Compares AuthConfigs for hosts that had none with what was asked before about requests to these hosts."""

from __future__ import annotations

from dataclasses import replace

from eastgate.api.authority import Authority
from eastgate.api.questions.ends import Host
from eastgate.cluster.points import Point
from eastgate.convert.gateway_hosts import hosts_on
from eastgate.dialects.kuadrant.hosts import is_inside
from eastgate.gateway.rules import every_rule
from eastgate.ir import Predicate
from eastgate.reach.differences import AuthorityComparison
from eastgate.reach.hosts import host_names

__all__ = ["compare_hosts"]


def compare_hosts(comparison: AuthorityComparison) -> AuthorityComparison:
    """Return a comparison without doubts about new hosts that are decided as all ways of the host were before."""
    old, new = comparison.old, comparison.new
    known = set(host_names(old))
    proven = {
        name
        for name in host_names(new)
        if name not in known and _is_as_before(old, new, name.removeprefix(Host.prefix))
    }
    doubts = tuple(doubt for doubt in comparison.doubts if doubt.subject not in proven)
    return replace(comparison, doubts=doubts)


def _is_as_before(old: Authority, new: Authority, host: str) -> bool:
    """Return whether the same schemes are asked about the same requests: on all ways of a host, and for it alone."""
    point = new.engine.host_point(host)
    rules = ((rule.point, hosts_on(rule, old.world)) for rule in every_rule(old.world))
    ways = [way for way, hosts in rules if any(is_inside(each, host) or is_inside(host, each) for each in hosts)]
    if point is None or not ways:
        return False
    asked = _asked(new, point)
    return all(_asked(old, way) == asked for way in ways)


def _asked(side: Authority, point: Point) -> list[tuple[str, Predicate]]:
    layers = side.engine.program(point).layers
    return [(str(ask.authorizer), ask.rule.when) for layer in layers for ask in layer.asks]
