"""The cluster that a report is about: its authority, its manifests and the effects of each policy.

The effects on a workload are read from the compiled layers of that workload, not from selectors. A policy without an
effect is therefore not listed: for example, a Baseline policy that a team's policy replaces, an AuthorizationPolicy for
a Server of another port, or an AuthPolicy that lost a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar, cast

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.enforcement import PolicyEnforcement
from eastgate.authority.reading import sort_documents
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.records import dataclass
from eastgate.cluster import ObjectId
from eastgate.cluster.hosts import hosts_meaning
from eastgate.cluster.points import Direction, NamedPoint, NetworkEnd, Point, RuleNamed, is_rule_of
from eastgate.cluster.routing.rules import every_rule
from eastgate.cluster.targets import (
    BackendNamed,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    RouteNamed,
    RulesOfGateway,
    RulesOfRoute,
)
from eastgate.cluster.unread import Callers, Handling, Unconsidered
from eastgate.dialects import Policy, dialect_of
from eastgate.dialects.linting import Finding
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.ir import Layer, PolicyRef
from eastgate.ir.symbolic.partial import Facts
from eastgate.reading.manifests import Document
from eastgate.reports.conditions import USUAL_FACTS
from eastgate.settings import Settings, Sidecars

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Effects:
    """The policies that shape some layers, and those that are only observed there (audit mode)."""

    enforced: frozenset[PolicyRef]
    observed: frozenset[PolicyRef]


def effects_of(layers: Iterable[Layer]) -> Effects:
    """Collect the policies that have rules in some layers, or that chose one of their chains."""
    enforced: set[PolicyRef] = set()
    observed: set[PolicyRef] = set()
    for layer in layers:
        for chain in layer.chains:
            enforced.update(chain.chosen_by)
            rules = chain.rules(observed=False)
            enforced |= {rule.origin.policy for rule in rules if rule.origin.policy is not None}
            observed |= {rule.origin.policy for rule, _ in chain.audited if rule.origin.policy is not None}
    return Effects(frozenset(enforced), frozenset(observed - enforced))


class Cluster:
    """An authority, the documents that it was built from, and the effects of each policy.

    `verbose`: tables cover all requests with exact conditions, instead of usual requests only.
    """

    def __init__(self, authority: Authority, documents: Sequence[Document] = (), *, verbose: bool = False) -> None:
        self.authority = authority
        self.verbose = verbose
        self.documents = list(documents)
        self.findings: list[Finding] | None = None  # findings of lint, computed on first use
        self._enforcement: dict[Point, list[PolicyEnforcement]] = {}
        self._by_class: dict[tuple[str | int, ...], object] = {}

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        settings: Settings,
        reporter: Reporter,
        twice: Iterable[tuple[Document, Diagnostic]] = (),
        *,
        strict: bool = True,
        unread: Handling = Handling.BY_KIND,
        verbose: bool = False,
    ) -> Cluster:
        """Build a cluster from documents. Raises ManifestError for manifests with errors.

        Unless `strict`, errors of policies do not raise; the policies close their targets instead.
        """
        manifests = sort_documents(documents, settings, reporter, twice)
        return cls(Authority(manifests, settings, strict=strict, unread=unread), documents, verbose=verbose)

    @property
    def given(self) -> Facts | None:
        """Return the facts that hold for all requests of the tables."""
        return None if self.verbose else USUAL_FACTS

    @property
    def policies(self) -> Sequence[Policy]:
        """Return every policy, sorted by kind, namespace and name."""
        return self._policies

    @cached_property
    def _policies(self) -> Sequence[Policy]:
        return self.authority.policies

    @cached_property
    def _by_name(self) -> dict[tuple[str, str, str | None, str], Document]:
        return {
            (document.group, document.kind, document.namespace, document.name): document for document in self.documents
        }

    def document(self, ref: PolicyRef | ObjectId) -> Document | None:
        """Return the manifest of a policy or of another object, as its author wrote it."""
        namespace = ref.namespace or None
        document = self._by_name.get((ref.group, ref.kind, namespace, ref.name))
        if document is None and namespace in (self.authority.settings.namespace, None):
            document = self._by_name.get((ref.group, ref.kind, None, ref.name))
        return document

    def layers(self, point: Point) -> tuple[Layer, ...]:
        return programs_of(self.authority).program(point).layers

    def attached(self, point: Point) -> list[Policy]:
        """Return the policies that target a point, each once. For a workload, include the network policies."""
        engine = programs_of(self.authority)
        attached = (each.policy for at in (point, *self.network_ends(point)) for each in engine.attached(at))
        return list({policy.ref: policy for policy in attached}.values())

    def network_ends(self, point: Point) -> tuple[NetworkEnd, ...]:
        """Return the network ends of a workload, if network policies apply to it."""
        engine = programs_of(self.authority)
        if not isinstance(point, str) or not engine.has_network_policies:
            return ()
        workload = self.authority.world.workloads[point]
        if workload.host_network or not workload.is_pod:
            return ()
        return tuple(NetworkEnd(point, direction) for direction in reversed(Direction))

    def unconsidered(self, points: Iterable[Point], *, network: bool = False) -> Unconsidered:
        """Return the unread objects that could change the callers of some points.

        `network`: include objects of network APIs, because network policies were not considered either.
        """
        authority = self.authority
        elsewhere = len(authority.rejected) - len(self.rejected_at(points))
        objects = authority.unanalysed if network else authority.unread_objects
        return objects.about(points, Callers(anybody=True), authority.world, rejected=elsewhere)

    def rejected_at(self, points: Iterable[Point]) -> list[RejectedPolicy]:
        """Return the invalid policies that target some points, including their network ends."""
        return self.authority.rejected_at([at for point in points for at in (point, *self.network_ends(point))])

    def effects(self, point: Point) -> Effects:
        """Return the policies that affect a point. Workloads that decide alike share one computation."""
        return self.of_class("effects", point, lambda: self._effects(point))

    def _effects(self, point: Point) -> Effects:
        layers = [layer for at in (point, *self.network_ends(point)) for layer in self.layers(at)]
        return self._with_silent(effects_of(layers), point)

    def of_class(self, what: str, point: Point, compute: Callable[[], T]) -> T:
        """Compute a value once for all points that decide alike: their compiled programs are the same."""
        engine = programs_of(self.authority)
        key: tuple[str | int, ...] = (what, *(id(engine.program(at)) for at in (point, *self.network_ends(point))))
        if key not in self._by_class:
            self._by_class[key] = compute()
        return cast("T", self._by_class[key])

    def _with_silent(self, effects: Effects, point: Point) -> Effects:
        """Add the policies that act without a rule.

        An ALLOW policy without rules closes its targets. An authentication acts through the policies that refer to it.
        """
        attached = self.attached(point)
        enforced = set(effects.enforced)
        open_ = {ref for each in self.enforcement(point) if each.by is None for ref in each.policies}
        closing = {policy.ref for policy in attached if dialect_of(policy).closes(policy)}
        enforced |= closing - open_
        observed = set(effects.observed)
        for policy in attached:
            if policy.ref in enforced:
                enforced |= set(policy.references)
            elif policy.ref in observed:
                observed |= set(policy.references)
        return Effects(frozenset(enforced), frozenset(observed - enforced))

    def points(self, policy: Policy) -> list[Point]:
        """Return the existing points of enforcement that a policy targets."""
        points: set[Point] = set()
        for target in policy.targets:
            if isinstance(target, GatewaysMatching):
                points |= self.authority.world.select_gateways(target)
            elif isinstance(target, RulesOfGateway | RulesOfRoute):
                points |= {rule for rule in self.rules if is_rule_of(rule, target)}
            elif isinstance(target, HostNamed):
                points |= self._hosts.get(target.host, set())
            elif not isinstance(target, NamedPoint):
                points |= self.authority.world.select(target)
            elif self._exists(target):
                points.add(target)
        return sorted(points, key=str)

    @cached_property
    def _hosts(self) -> dict[str, set[HostNamed]]:
        """Return the hosts that policies target, by each host or wildcard that covers them."""
        targets = (target for policy in self.policies for target in policy.targets)
        by_meaning: dict[str, set[HostNamed]] = {}
        for host in {target for target in targets if isinstance(target, HostNamed)}:
            for meaning in hosts_meaning(host.host):
                by_meaning.setdefault(meaning, set()).add(host)
        return by_meaning

    @cached_property
    def rules(self) -> list[RuleNamed]:
        """Return the rules of all routes in the order of the routes, one entry for each listener."""
        rules = (routed.point for routed in every_rule(self.authority.world))
        return sorted(rules, key=lambda rule: (rule.route, rule.gateway or (), rule.listener or "", rule.rule))

    def _exists(self, point: NamedPoint) -> bool:
        world, key = self.authority.world, f"{point.namespace}/{point.name}"
        match point:
            case GatewayNamed():
                return key in world.gateways
            case RouteNamed():
                return f"{point.kind}/{key}" in world.routes
            case BackendNamed():
                return key in world.backends

    @property
    def knows_proxies(self) -> bool:
        """Return whether Eastgate knows which pods have a proxy. It does for a running cluster."""
        return self.authority.settings.sidecars is Sidecars.ACTUAL

    def enforcement(self, point: Point) -> list[PolicyEnforcement]:
        """Return the enforcers of the policies at a point. The result is cached."""
        if point not in self._enforcement:
            self._enforcement[point] = self.authority.enforcement_at(point)
        return self._enforcement[point]

    def unenforced(self, policy: Policy) -> dict[Point, PolicyEnforcement]:
        """Return the target points where no enforcer is certain to apply a policy, each with the reason."""
        return {
            point: each
            for point in self.points(policy)
            for each in self.enforcement(point)
            if policy.ref in each.policies and (each.by is None or not each.certain)
        }

    def affected(self, policy: Policy) -> list[Point]:
        """Return the points where a policy decides, or where it is observed in audit mode."""
        return [point for point in self._candidates(policy) if self._affects(policy, point)]

    def _affects(self, policy: Policy, point: Point) -> bool:
        effects = self.effects(point)
        return policy.ref in effects.enforced or policy.ref in effects.observed

    def _candidates(self, policy: Policy) -> list[Point]:
        if policy.targets:
            return self.points(policy)
        referring = self.referring(policy.ref)
        return sorted({point for referrer in referring for point in self.points(referrer)}, key=str)

    def beside(self, policy: Policy) -> list[Policy]:
        """Return the policies that may conflict with a policy: those of its API and namespace, and those it refers to.

        Policies for hosts or for rules of routes are compared across namespaces, because a route and its Gateway may be
        in different namespaces.
        """
        ours = self._by_home.get((policy.ref.group, policy.ref.namespace), [])
        if any(isinstance(target, HostNamed | RulesOfGateway | RulesOfRoute) for target in policy.targets):
            ours = [other for other in self.policies if other.ref.group == policy.ref.group]
        return [*ours, *(self._by_ref[ref] for ref in policy.references if ref in self._by_ref)]

    @cached_property
    def _by_ref(self) -> dict[PolicyRef, Policy]:
        return {policy.ref: policy for policy in self.policies}

    @cached_property
    def _by_home(self) -> dict[tuple[str, str | None], list[Policy]]:
        policies_by_home: dict[tuple[str, str | None], list[Policy]] = {}
        for policy in self.policies:
            policies_by_home.setdefault((policy.ref.group, policy.ref.namespace), []).append(policy)
        return policies_by_home

    def referring(self, ref: PolicyRef) -> list[Policy]:
        """Return the policies that refer to another policy, for example to an authentication."""
        return self._referring.get(ref, [])

    @cached_property
    def _referring(self) -> dict[PolicyRef, list[Policy]]:
        referrers: dict[PolicyRef, list[Policy]] = {}
        for policy in self.policies:
            for ref in policy.references:
                referrers.setdefault(ref, []).append(policy)
        return referrers

    @cached_property
    def affected_counts(self) -> dict[PolicyRef, int]:
        """Return the number of points that each policy affects, for all policies at once."""
        counts: dict[PolicyRef, int] = {policy.ref: 0 for policy in self.policies}
        for point in self._every_point():
            effects = self.effects(point)
            for ref in effects.enforced | effects.observed:
                if ref in counts:
                    counts[ref] += 1
        return counts

    def _every_point(self) -> Iterator[Point]:
        yield from self.authority.world.workloads
        named = NamedPoint | RulesOfGateway | RulesOfRoute | HostNamed
        targeting = [policy for policy in self.policies if any(isinstance(target, named) for target in policy.targets)]
        points = (point for policy in targeting for point in self.points(policy))
        declared = {point for point in points if isinstance(point, NamedPoint | RuleNamed | HostNamed)}
        yield from sorted(declared, key=str)
