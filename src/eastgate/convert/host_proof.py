"""Compares the auth schemes for hosts with the auth schemes of the routes that serve these hosts.

A converted AuthConfig must decide as all routes of its hosts did. A converted AuthPolicy on a route without a policy
must ask as the AuthConfig of the host did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from eastgate.authority.authority import Authority, programs_of
from eastgate.cluster.ends import Host
from eastgate.cluster.points import Point, RuleNamed
from eastgate.cluster.routing.model import Routed
from eastgate.cluster.routing.rules import every_rule
from eastgate.convert.gateway_conditions import are_mixed_up, hosts_on, serves_tls
from eastgate.dialects.kuadrant.authorino.authorizer import SchemeAuthorizer
from eastgate.dialects.kuadrant.authorino.model import Scheme
from eastgate.dialects.kuadrant.hosts import is_inside
from eastgate.ir import ALWAYS, NEVER, Computed, Deny, Is, OneOf, Predicate, Suffix, rewrite
from eastgate.ir import atoms as atoms_of
from eastgate.ir.attributes import HOST, SNI
from eastgate.reach.alike import are_alike
from eastgate.reach.comparison import AuthorityComparison, ComparisonDoubt, DoubtReason
from eastgate.reach.hosts import host_names

_MAX_ATOMS = 12


def compare_hosts(comparison: AuthorityComparison) -> AuthorityComparison:
    """Return a comparison without doubts about new hosts whose routes had the same decisions before.

    A host is in doubt if a route of the host is decided now, was not decided before, and does not agree with the
    AuthConfig of the host.
    """
    old, new = comparison.old, comparison.new
    known = set(host_names(old))
    proven = {
        name
        for name in host_names(new)
        if name not in known and _is_as_before(old, new, name.removeprefix(Host.prefix))
    }
    doubts = [doubt for doubt in comparison.doubts if doubt.subject not in proven]
    if opened := list(_newly_asked(old, new)):
        doubts = [doubt for doubt in doubts if not _was_open(doubt)]
        doubts += (
            ComparisonDoubt(DoubtReason.HOST, str(Host(host))) for host in _hosts_decided_differently(opened, old, new)
        )
    return replace(comparison, doubts=tuple(doubts))


def _is_as_before(old: Authority, new: Authority, host: str) -> bool:
    """Return whether all route rules of a host asked the same schemes about the same requests as the host does now."""
    point = programs_of(new).host_point(host)
    rules = ((rule, hosts_on(rule, old.world)) for rule in every_rule(old.world))
    ways = [rule for rule, hosts in rules if any(are_mixed_up(each, host) for each in hosts)]
    if point is None or not ways:
        return False
    for way in ways:
        for arriving in hosts_on(way, old.world):
            if are_mixed_up(arriving, host):
                near = arriving if is_inside(arriving, host) else host
                is_plain = not serves_tls([way], old.world)
                if not _are_equal_decisions(
                    _decisions_for_host(_decisions(old, _points(way.point), denied=True), near, is_plain=is_plain),
                    _decisions_for_host(_decisions(new, [point]), near, is_plain=is_plain),
                ):
                    return False
    return True


# Decisions

_Decision = tuple[str, Predicate]


def _decisions(side: Authority, points: Iterable[Point], *, denied: bool = False) -> Iterator[_Decision]:
    """Yield the schemes that are asked, each with its requests; with `denied` also the requests that are denied without
    a scheme.
    """
    for point in points:
        for layer in programs_of(side).program(point).layers:
            asks = list(layer.asks)
            yield from ((ask.authorizer, ask.rule.when) for ask in asks)
            stages = (stage for chain in layer.chains for stage in chain.stages if asks and denied)
            yield from (
                (str(stage.name), rule.when) for stage in stages if isinstance(stage, Deny) for rule in stage.rules
            )


def _decisions_for_host(decisions: Iterable[_Decision], host: str, *, is_plain: bool) -> list[_Decision]:
    """Return the decisions about requests to a host.

    `is_plain`: these requests have no server name of a TLS handshake.
    """

    def settle(atom: Is | Computed) -> Predicate:
        if not isinstance(atom, Is):
            return atom
        if atom.attribute == SNI and is_plain:
            return NEVER
        if atom.attribute == HOST and isinstance(atom.matcher, Suffix | OneOf):
            texts = [f"*{atom.matcher.text}"] if isinstance(atom.matcher, Suffix) else atom.matcher.values
            meant = list(map(str, texts))
            if any(is_inside(host, each) for each in meant):
                return ALWAYS
            return atom if any(is_inside(each, host) for each in meant) else NEVER
        return atom

    settled = ((name, rewrite(when, settle)) for name, when in decisions)
    return [(name, when) for name, when in settled if when != NEVER]


def _are_equal_decisions(old: Sequence[_Decision], new: Sequence[_Decision]) -> bool:
    return len(old) == len(new) and all(
        name == other and _are_equal(when, then) for (name, when), (other, then) in zip(old, new, strict=True)
    )


def _are_equal(first: Predicate, second: Predicate) -> bool:
    """Return whether two predicates are equal for every value of their atoms. False if there are too many atoms."""
    atoms = list(dict.fromkeys((*atoms_of(first), *atoms_of(second))))
    if first == second or len(atoms) > _MAX_ATOMS:
        return first == second
    certain: tuple[Predicate, Predicate] = (ALWAYS, NEVER)
    for held in product(certain, repeat=len(atoms)):
        values: dict[Is | Computed, Predicate] = dict(zip(atoms, held, strict=True))
        if rewrite(first, values.__getitem__) != rewrite(second, values.__getitem__):
            return False
    return True


def _asked(side: Authority, point: Point) -> list[_Decision]:
    return list(_decisions(side, [point]))


# Routes


def _newly_asked(old: Authority, new: Authority) -> Iterator[Routed]:
    """Yield the rules of routes that have a policy now and had none before."""
    for rule in every_rule(old.world):
        if _schemes_asked(new, rule.point) and not any(_asked(old, point) for point in _points(rule.point)):
            yield rule


def _was_open(doubt: ComparisonDoubt) -> bool:
    """Return whether the requests in doubt were open, and now need a scheme that may allow all of them."""
    difference = doubt.difference
    if doubt.reason is not DoubtReason.SCHEME or difference is None:
        return False
    return difference.old.is_unopposed and not difference.new.allowed


def _hosts_decided_differently(ways: Iterable[Routed], old: Authority, new: Authority) -> list[str]:
    """Return the hosts of route rules that ask other schemes than the AuthConfig of the host."""
    hosts: list[str] = []
    for rule in ways:
        asked = _schemes_asked(new, rule.point)
        for host in hosts_on(rule, old.world):
            point = programs_of(old).host_point(host)
            if point is None or not are_alike(asked, _schemes_asked(old, point)):
                hosts.append(host)
    return list(dict.fromkeys(hosts))


def _points(way: RuleNamed) -> Sequence[Point]:
    return (way, way.route, *((way.gateway,) if way.gateway is not None else ()))


def _schemes_asked(side: Authority, point: Point) -> list[tuple[Scheme, Predicate]]:
    """Return the schemes that are asked, without the namespaces of their Secrets, and the requests that each is asked
    about.
    """
    asks = [ask for layer in programs_of(side).program(point).layers for ask in layer.asks]
    return [
        (replace(ask.evaluator.scheme, namespace=""), ask.rule.when)
        for ask in asks
        if isinstance(ask.evaluator, SchemeAuthorizer)
    ]
