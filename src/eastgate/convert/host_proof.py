"""Compares what Authorino is asked about hosts with what is asked on the ways of requests to these hosts.

AuthConfigs that came out must decide as all ways of their hosts did. And on ways that had no policy, what came out must
ask as the AuthConfig of the host did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from eastgate.api.authority import Authority
from eastgate.api.questions.ends import Host
from eastgate.cluster.points import Point, RuleNamed
from eastgate.convert.gateway_hosts import are_mixed_up, hosts_on
from eastgate.dialects.kuadrant.authorino.authorizer import SchemeAuthorizer
from eastgate.dialects.kuadrant.authorino.model import Scheme
from eastgate.gateway.model import Routed
from eastgate.gateway.rules import every_rule
from eastgate.ir import Predicate
from eastgate.reach.alike import are_alike
from eastgate.reach.differences import AuthorityComparison, ComparisonDoubt, DoubtReason
from eastgate.reach.hosts import host_names

__all__ = ["compare_hosts"]


def compare_hosts(comparison: AuthorityComparison) -> AuthorityComparison:
    """Return a comparison without doubts about new hosts that are decided as all ways of the host were before.

    A host is in doubt where a way of it is decided now, was not before, and not as the AuthConfig of the host decides.
    """
    old, new = comparison.old, comparison.new
    known = set(host_names(old))
    proven = {
        name
        for name in host_names(new)
        if name not in known and _is_as_before(old, new, name.removeprefix(Host.prefix))
    }
    doubts = [doubt for doubt in comparison.doubts if doubt.subject not in proven]
    if opened := list(_asked_anew(old, new)):
        doubts = [doubt for doubt in doubts if not _was_open(doubt)]
        doubts += (ComparisonDoubt(DoubtReason.HOST, Host(host)) for host in _decided_otherwise(opened, old, new))
    return replace(comparison, doubts=tuple(doubts))


def _is_as_before(old: Authority, new: Authority, host: str) -> bool:
    """Return whether the same schemes are asked about the same requests: on all ways of a host, and for it alone."""
    point = new.engine.host_point(host)
    rules = ((rule.point, hosts_on(rule, old.world)) for rule in every_rule(old.world))
    ways = [way for way, hosts in rules if any(are_mixed_up(each, host) for each in hosts)]
    if point is None or not ways:
        return False
    asked = _asked(new, point)
    return all(_asked(old, way) == asked for way in ways)


def _asked(side: Authority, point: Point) -> list[tuple[str, Predicate]]:
    layers = side.engine.program(point).layers
    return [(str(ask.authorizer), ask.rule.when) for layer in layers for ask in layer.asks]


# Ways


def _asked_anew(old: Authority, new: Authority) -> Iterator[Routed]:
    """Yield the ways that had no policy, and have one now."""
    for rule in every_rule(old.world):
        if _schemes_asked(new, rule.point) and not any(_asked(old, point) for point in _points(rule.point)):
            yield rule


def _was_open(doubt: ComparisonDoubt) -> bool:
    """Return whether nobody was asked about the requests in doubt, and a scheme that may allow all of them is now."""
    difference = doubt.difference
    if doubt.reason is not DoubtReason.SCHEME or difference is None:
        return False
    return difference.old.is_unopposed and not difference.new.allowed


def _decided_otherwise(ways: Iterable[Routed], old: Authority, new: Authority) -> list[str]:
    """Return the hosts of ways that do not ask what the AuthConfig of the host asks."""
    hosts: list[str] = []
    for rule in ways:
        asked = _schemes_asked(new, rule.point)
        for host in hosts_on(rule, old.world):
            point = old.engine.host_point(host)
            if point is None or not are_alike(asked, _schemes_asked(old, point)):
                hosts.append(host)
    return list(dict.fromkeys(hosts))


def _points(way: RuleNamed) -> Sequence[Point]:
    return (way, way.route, *((way.gateway,) if way.gateway is not None else ()))


def _schemes_asked(side: Authority, point: Point) -> list[tuple[Scheme, Predicate]]:
    """Return the schemes that are asked, wherever they look for Secrets, and about which requests."""
    asks = [ask for layer in side.engine.program(point).layers for ask in layer.asks]
    return [
        (replace(ask.evaluator.scheme, namespace=""), ask.rule.when)
        for ask in asks
        if isinstance(ask.evaluator, SchemeAuthorizer)
    ]
