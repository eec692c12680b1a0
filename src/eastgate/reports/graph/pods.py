"""Rows by pod: network policies select pods, so a row begins at a workload instead of its account.

A pod that exists is a caller of its own. Pods that do not exist yet are callers by their labels: labels that no pod
has, and that get another verdict, are a row `data/[pods with app=orders-api]`. Where policies on identities decide,
rows begin at accounts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from eastgate.authority.authority import programs_of
from eastgate.basics.records import dataclass
from eastgate.cluster import Workload
from eastgate.ir import Computed, Is, Origin, Predicate, Prefix, atoms, labels_text, rewrite
from eastgate.ir.attributes import ADDRESS, IDENTITY, PACKET_SOURCE, SOURCE_LABELS, SOURCE_WORKLOAD, VICINITY
from eastgate.ir.spiffe import SCHEME
from eastgate.ir.symbolic.callers import AccountsIn, IdentityCell
from eastgate.ir.symbolic.partial import Facts
from eastgate.ir.symbolic.simplify import negation
from eastgate.ir.symbolic.trees import Entry
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.destinations import Entrance
from eastgate.reach.endings import Branch
from eastgate.reach.network import FROM_OWN_NODE, NO_NETWORK_POLICY, network_reach
from eastgate.reach.reachability import Answer
from eastgate.reports.graph.build import Survey, without_rules
from eastgate.reports.graph.conditions import narrow, within
from eastgate.reports.graph.model import Bundle, GraphNode, NodeKind, ReachVerdict
from eastgate.reports.graph.pod_groups import MAX_EXCEPTIONS, PodCaller, PodNames
from eastgate.reports.graph.reached import DestinationVerdicts, ReachOutcome, entrances_at, outcome_of
from eastgate.reports.graph.selection import PortSet, facts_of, is_subset, port_sets, union, with_ports

_BY_POD = frozenset({SOURCE_WORKLOAD, SOURCE_LABELS, VICINITY})


@dataclass(frozen=True, slots=True)
class _PodWay:
    """The outcome for some callers: one row."""

    service: str | None
    tls: bool | None
    outcome: ReachOutcome
    by_identity: bool
    ports: PortSet

    def covers(self, other: _PodWay) -> bool:
        """Return whether callers with this outcome may also do all that the other outcome allows."""
        if self == other:
            return True
        if (self.service, self.tls, without_rules(self.outcome)) != (
            other.service,
            other.tls,
            without_rules(other.outcome),
        ):
            return False
        return is_subset(other.ports, self.ports)


@dataclass(frozen=True, slots=True)
class _PodEntrance:
    """An entrance of a destination: its selected ports, its answers, and the number that equal entrances share."""

    entrance: Entrance
    ports: PortSet
    answers: tuple[Answer, ...]
    number: int


class PodRows:
    """The rows of workloads, by the pods that call them."""

    def __init__(self, surveyed: Survey, *, why: bool, each: bool = False) -> None:
        """`each`: rows name every pod, and nothing else."""
        self._found = surveyed
        self._why = why
        self._names = PodNames(surveyed, each=each)
        self._authority = surveyed.reach.authority
        self.nodes: dict[str, GraphNode] = {}

    @cached_property
    def _pods(self) -> dict[int, list[Workload]]:
        """Return the workloads of each cell of callers."""
        callers = self._found.reach.callers
        domain = self._authority.settings.trust_domain
        by_identity: dict[str | None, list[Workload]] = defaultdict(list)
        for workload in self._authority.world.workloads.values():
            by_identity[workload.identity_in(domain)].append(workload)
        return {
            number: by_identity[cell.identity]
            for number, cell in enumerate(callers.cells)
            if isinstance(cell, IdentityCell) and cell.identity in by_identity
        }

    @cached_property
    def _labels(self) -> dict[str, list[tuple[str, str]]]:
        """Return the pods of each namespace that policies can select, with their labels."""
        labels: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for pod in self._authority.world.workloads.values():
            if pod.is_pod and not pod.host_network:
                labels[pod.namespace].append((f"pod:{pod.key}", labels_text(pod.labels)))
        return labels

    def bundles(self, reached: DestinationVerdicts) -> list[Bundle]:
        """Return the rows of one destination."""
        entrances = [
            _PodEntrance(
                entrance,
                ports,
                self._found.reach.answers(entrance),
                self._numbers.setdefault(entrance, len(self._numbers)),
            )
            for entrance, ports in port_sets(reached.destination, self._found.selection.port)
        ]
        ways = {caller: self._ways(caller, entrances) for caller in self._callers(reached)}
        bare = {caller.id: _bare(taken) for caller, taken in ways.items() if caller.workload is not None}
        shown = {
            caller: taken
            for caller, taken in ways.items()
            if any(way.by_identity for way in taken)
            or not any(bare.get(other) == _bare(taken) for other in caller.like)
        }
        rows: dict[_PodWay, list[PodCaller]] = {}
        for caller, taken in shown.items():
            for way in taken:
                rows.setdefault(way, []).append(caller)
        bundles: list[Bundle] = []
        for way, callers in rows.items():
            is_denied = way.outcome.verdict is ReachVerdict.DENY
            if is_denied and not self._found.selection.denied:
                continue
            alike = {caller for caller, taken in ways.items() if any(other.covers(way) for other in taken)}
            for some, targets in self._pairs(callers, reached.members):
                is_local = len(some) < len(callers)
                sources = self._names.sources(
                    some, alike, list(ways), reached, by_identity=way.by_identity, is_local=is_local
                )
                self.nodes |= {node.id: node for node in sources}
                names = tuple(node.id for node in sources)
                alone = Bundle(names, targets, (), False, way.outcome.verdict, way.outcome.ways, way.outcome.denied_by)
                if names:
                    each = with_ports(replace(alone, service=way.service, tls=way.tls), way.ports)
                    bundles += self._without_own(each)
        return bundles

    def _without_own(self, bundle: Bundle) -> Iterator[Bundle]:
        """Yield a bundle without the access of pods to themselves. Pods of a template are several."""
        workloads = self._authority.world.workloads
        both = [name for name in bundle.targets if name in bundle.sources and not self._found.selection.near]
        alone = [name for name in both if not workloads[name.partition(":")[2]].derived]
        rest = tuple(name for name in bundle.targets if name not in alone)
        if rest:
            yield replace(bundle, targets=rest)
        for name in alone:
            sources = tuple(source for source in bundle.sources if source != name)
            if sources:
                yield replace(bundle, sources=sources, targets=(name,))

    def _pairs(
        self, callers: list[PodCaller], targets: tuple[str, ...]
    ) -> Iterator[tuple[list[PodCaller], tuple[str, ...]]]:
        """Yield the selected pairs."""
        wanted = self._found.selection.namespace
        inside = tuple(name for name in targets if wanted in (None, self._found.targets[name].namespace))
        outside = tuple(name for name in targets if name not in inside)
        local = [caller for caller in callers if caller.namespace == wanted]
        if inside:
            yield callers, inside
        if outside and local:
            yield local, outside

    # Callers

    def _callers(self, reached: DestinationVerdicts) -> Iterator[PodCaller]:
        """Yield the selected callers, as a workload of this destination distinguishes them."""
        selection = self._found.selection
        workload = self._authority.world.workloads[reached.destination.members[0]]
        closed = self._closed(reached)
        for number, node in self._found.every_caller.items():
            if closed >> number & 1:
                yield PodCaller(node.id, number, Facts(), node.namespace, is_closed=True)
            elif number in self._pods:
                for pod in self._pods[number]:
                    if pod.key == workload.key and not self._is_near(pod, reached):
                        continue
                    named = GraphNode(f"pod:{pod.key}", NodeKind.POD, pod.namespace, node.id)
                    if selection.chooses_pod(named, node):
                        yield PodCaller(named.id, number, self._facts_of(pod, workload), pod.namespace, pod)
            elif node.kind is NodeKind.OTHER_ACCOUNTS:
                yield from self._kinds(number, node, workload)
            elif node.kind is not NodeKind.SERVICE_ACCOUNT or not self._is_like_others(number, node, reached):
                yield PodCaller(node.id, number, Facts(), node.namespace)

    def _closed(self, reached: DestinationVerdicts) -> CallerSet:
        """Return the cells whose requests are all denied; none if there are so few that they can be named
        as exceptions.
        """
        closed: CallerSet = self._found.reach.callers.everybody
        for entrance, _, _ in entrances_at(reached.destination, self._found.selection.port):
            answers = self._found.reach.answers(entrance)
            closed &= sum(answer.callers for answer in answers if answer.allowed is False)
        return closed if closed.bit_count() > MAX_EXCEPTIONS and not self._found.selection.denied else 0

    def _is_near(self, pod: Workload, reached: DestinationVerdicts) -> bool:
        """Return whether a pod may be listed as its own caller: the caller may be another pod of its template."""
        return self._found.selection.near or pod.derived or len(reached.destination.members) > 1

    def _facts_of(self, pod: Workload, called: Workload) -> Facts:
        facts = {SOURCE_WORKLOAD: pod.key}
        is_near = self._found.selection.near and pod.key == called.key
        return Facts(facts if is_near else {**facts, VICINITY: None})

    def _kinds(self, number: int, node: GraphNode, workload: Workload) -> Iterator[PodCaller]:
        """Yield the kinds of pods that may be in a namespace, each with the existing pods of this kind."""
        found = network_reach(self._authority).kinds_of_pods(workload, node.namespace)
        if found is None:
            yield PodCaller(node.id, number, Facts({VICINITY: None}), node.namespace)
            return
        selectors, kinds = found
        like: dict[tuple[bool, ...], list[str]] = defaultdict(list)
        for name, labels in self._labels[node.namespace] if node.namespace is not None else ():
            like[tuple(selector.contains(labels) for selector in selectors)].append(name)
        for labels in kinds:
            same = like[tuple(selector.contains(labels) for selector in selectors)]
            facts = Facts({SOURCE_LABELS: labels, VICINITY: None})
            yield PodCaller(f"{node.id} {labels}", number, facts, node.namespace, labels=labels, like=tuple(same))

    def _is_like_others(self, number: int, node: GraphNode, reached: DestinationVerdicts) -> bool:
        """Return whether an account without pods gets the same answers as accounts that no manifest declares."""
        callers = self._found.reach.callers
        others = callers.set_of([AccountsIn(callers.callers.domain, str(node.namespace))])
        alike: CallerSet = callers.everybody
        for entrance in reached.destination.entrances:
            alike &= next(a.callers for a in self._found.reach.answers(entrance) if a.callers >> number & 1)
        return bool(others & alike)

    # Outcomes

    def _ways(self, caller: PodCaller, entrances: Sequence[_PodEntrance]) -> frozenset[_PodWay]:
        """Return the outcomes for a caller. Ports with equal outcomes are merged."""
        found: dict[tuple[str | None, bool | None, ReachOutcome, bool], list[tuple[int, int]]] = defaultdict(list)
        for each in entrances:
            found[each.entrance.service, each.entrance.tls, *self._outcome(caller, each)] += each.ports
        return frozenset(_PodWay(*what, union(ports)) for what, ports in found.items())

    def _outcome(self, caller: PodCaller, entered: _PodEntrance) -> tuple[ReachOutcome, bool]:
        entrance = entered.entrance
        answer = next(each for each in entered.answers if each.callers >> caller.number & 1)
        key = entered.number, id(answer), caller.id if self._is_by_pod(answer) else None
        if key not in self._outcomes:
            facts = facts_of(self._found.selection).and_(caller.facts)
            branches = narrow(answer.branches, facts)
            if not self._found.selection.near:
                branches = tuple(branch for branch in branches if not _is_from_node(branch.end.origin))
            if self._found.every_caller[caller.number].is_external and not self._found.selection.exact:
                branches = self._of_outsiders(branches)
            outcome = _without_default(outcome_of(entrance, answer, branches, facts, exact=self._found.selection.exact))
            rules = [origin for way in outcome.ways for origin in way.by]
            by_identity = bool(rules) and not any(
                origin.policy is None or origin.policy in programs_of(self._authority).network_refs for origin in rules
            )
            self._outcomes[key] = (outcome if self._why else without_rules(outcome)), by_identity
        return self._outcomes[key]

    def _of_outsiders(self, branches: Sequence[Branch]) -> tuple[Branch, ...]:
        """Return the branches for callers that are not pods, in the terms used for pods.

        No such caller has an identity of this trust domain's namespaces, and the address of the peer is the source
        address of its packets.
        """
        own = Is(IDENTITY, Prefix(f"{SCHEME}{self._authority.settings.trust_domain}/ns/"))

        def settle(atom: Is | Computed) -> Predicate:
            is_address = isinstance(atom, Is) and atom.attribute == ADDRESS
            return Is(PACKET_SOURCE, atom.matcher) if isinstance(atom, Is) and is_address else atom

        kept = within(branches, negation(own))
        return tuple(Entry(rewrite(branch.when, settle), branch.end) for branch in kept)

    @cached_property
    def _outcomes(self) -> dict[object, tuple[ReachOutcome, bool]]:
        return {}

    @cached_property
    def _numbers(self) -> dict[Entrance, int]:
        return {}

    @cached_property
    def _by_pod(self) -> dict[int, tuple[Answer, bool]]:
        return {}

    def _is_by_pod(self, answer: Answer) -> bool:
        """Return whether pods of one account may get different verdicts."""
        known = self._by_pod.get(id(answer))
        if known is None:
            found = (atom for branch in answer.branches for atom in atoms(branch.when))
            is_by_pod = any(isinstance(atom, Is) and atom.attribute in _BY_POD for atom in found)
            known = self._by_pod[id(answer)] = answer, is_by_pod
        return known[1]


def _bare(ways: frozenset[_PodWay]) -> frozenset[_PodWay]:
    """Return ways without the rules that decide."""
    return frozenset(replace(way, outcome=without_rules(way.outcome), by_identity=False) for way in ways)


def _without_default(outcome: ReachOutcome) -> ReachOutcome:
    """Return an outcome without origins that only state that no network policy decides."""
    ways = tuple(
        replace(way, by=tuple(each for each in way.by if each.derived != NO_NETWORK_POLICY)) for way in outcome.ways
    )
    return replace(outcome, ways=ways)


def _is_from_node(origin: Origin | None) -> bool:
    return origin is not None and origin.derived == FROM_OWN_NODE
