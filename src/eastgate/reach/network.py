"""Network policies, as layers that read callers: the connections that both ends allow.

Network policies select pods and addresses, but all other answers are about callers with identities. So the verdicts on
the pods of each account are computed once for each class of workloads. They become the first layer. It is about TCP.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from weakref import WeakKeyDictionary

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.questions.labels import selectors_about
from eastgate.authority.questions.senders import (
    OUTSIDE,
    Receiver,
    Sender,
    TooManyKinds,
    any_pod,
    imagine_senders,
    receive,
    send,
)
from eastgate.basics.records import dataclass
from eastgate.cluster import Workload, account_of
from eastgate.cluster.points import Direction, NetworkEnd
from eastgate.dialects import Policy
from eastgate.engine.programs import Programs
from eastgate.ir import (
    ALWAYS,
    AccountsOf,
    AnyAccount,
    Chain,
    Computed,
    Effect,
    FirstMatch,
    ImpliedRule,
    InNetwork,
    Is,
    Known,
    Labelled,
    Layer,
    Not,
    OneOf,
    Origin,
    Placement,
    Predicate,
    Present,
    Refusal,
    Rule,
    RuleKind,
    SelectorCase,
    Site,
    Stage,
    Step,
    all_of,
    any_of,
    mentions,
    rewrite,
    rewrite_stage,
)
from eastgate.ir.addresses import parse_network
from eastgate.ir.attributes import (
    ADDRESS,
    IDENTITY,
    PACKET_SOURCE,
    PORT,
    PORT_NAME,
    SOURCE_LABELS,
    SOURCE_WORKLOAD,
    TRANSPORT,
    UNKNOWN,
    VICINITY,
    Attribute,
)
from eastgate.ir.labels import Selector
from eastgate.reach.network_verdicts import NetworkVerdict, NetworkVerdicts, ReceiverEnd, equal
from eastgate.reach.requests import EVERY_PORT, port_classes

_AT_ENDS = Placement(Site.NETWORK, "both ends")
_UNDECLARED_NAMESPACE = "any-other"  # a namespace that no manifest declares


@dataclass(frozen=True, slots=True, eq=False)
class _ImaginedPods:
    """A pod of each kind that could be in a namespace, and the selectors that distinguish the kinds."""

    senders: tuple[Sender, ...]
    selectors: tuple[Labelled, ...]

    def labelled(self, chosen: Sequence[Sender]) -> Predicate:
        """Match pods of the chosen kinds: ANY of the terms, each a selector, or all pods, without other selectors."""
        kinds = frozenset(map(_labels, self.senders))
        wanted = frozenset(map(_labels, chosen))
        selected = {
            Is(SOURCE_LABELS, each): frozenset(filter(each.contains, kinds)) for each in (*self.selectors, _ANY_LABELS)
        }
        terms: list[tuple[frozenset[str], Predicate]] = []
        for atom, inside in selected.items():
            overlaps = {inside & each: other for other, each in selected.items() if inside & each}
            unwanted = {each: other for each, other in overlaps.items() if not each & wanted}
            excepted = [other for each, other in unwanted.items() if not any(each < more for more in unwanted)]
            rest = inside.difference(*unwanted)
            if rest and rest <= wanted:
                base = [] if atom.matcher == _ANY_LABELS else [atom]
                terms.append((rest, all_of([*base, *(Not(each) for each in excepted)])))
        terms.sort(key=lambda term: (-len(term[0]), str(term[1])))
        taken: list[Predicate] = []
        covered: frozenset[str] = frozenset()
        for rest, when in terms:
            if not rest <= covered:
                taken.append(when)
                covered |= rest
        return any_of(taken) if covered == wanted else Is(SOURCE_LABELS, OneOf(wanted))


_ANY_LABELS = Labelled(Selector.of())
ISOLATION = ImpliedRule(RuleKind.DEFAULT, "isolation by network policies")
"""Denies if policies select a pod and none of their rules allows the request. No single rule decides."""
NO_NETWORK_POLICY = ImpliedRule(RuleKind.DEFAULT, "no network policy")
"""Allows if no network policy selects either end."""
FROM_OWN_NODE = ImpliedRule(RuleKind.PROBE, "a pod's own node, which may always call it,")
_ISOLATED, _OPEN, _FROM_NODE = (Origin(None, 0, derived=rule) for rule in (ISOLATION, NO_NETWORK_POLICY, FROM_OWN_NODE))

_reached: WeakKeyDictionary[Programs[Policy], tuple[int, NetworkReach]] = WeakKeyDictionary()


def network_layers(authority: Authority, workload: Workload) -> tuple[Layer, ...]:
    """Return the network layer before a workload, or no layer if there are no network policies."""
    return (network_reach(authority).layer(workload),) if programs_of(authority).has_network_policies else ()


def network_reach(authority: Authority) -> NetworkReach:
    """Return the network verdicts of an authority. They are computed once for each version of its engine."""
    engine = programs_of(authority)
    version, reached = _reached.get(engine, (-1, None))
    if reached is None or version != engine.version:
        reached = NetworkReach(authority)
        _reached[engine] = engine.version, reached
    return reached


class NetworkReach:
    """The verdicts of network policies on connections between all pods of one version of an authority."""

    def __init__(self, authority: Authority) -> None:
        self._world = authority.world
        self._settings = authority.settings
        self._engine = programs_of(authority)
        self._kinds_of_pods: dict[Hashable, tuple[list[Labelled], list[str]] | None] = {}
        self._imagined: dict[Hashable, _ImaginedPods | None] = {}
        self._layers: dict[Hashable, Layer] = {}
        self._accounts: dict[str, list[Sender]] = defaultdict(list)
        domain = self._settings.trust_domain
        for workload in self._world.workloads.values():
            identity = workload.identity_in(domain)
            if identity is not None and (workload.is_pod or (account_of(identity) or ("",))[0] == domain):
                self._accounts[identity] += send(workload, self._world)
        self._connections = NetworkVerdicts(authority)
        self._egress = self._connections.egress
        atoms = (atom for layer in self._egress for atom in layer.atoms(observed=False))
        self._asked_of_ports = tuple(dict.fromkeys(atom for atom in atoms if PORT in mentions(atom)))
        self._looked_at = frozenset[Attribute]().union(*(layer.looks_at for layer in self._egress))

    @property
    def atoms(self) -> Iterator[Is]:
        """Yield the atoms of the network policies."""
        ends = [NetworkEnd(key, Direction.INGRESS) for key in self._world.workloads]
        programs = {id(program): program for program in map(self._engine.program, ends)}
        layers = [*self._egress, *(layer for program in programs.values() for layer in program.layers)]
        yield from (atom for layer in layers for atom in layer.atoms(observed=False) if isinstance(atom, Is))

    def passes(self, sender: Sender, receivers: Sequence[Receiver], port: int, transport: str) -> bool:
        """Return whether a connection is allowed at every address of the receiver."""
        return self._connections.verdict(sender, self._connections.arrivals(receivers, port, transport)).passes

    def decide(self, sender: Sender, receivers: Sequence[Receiver], port: int) -> tuple[bool, Origin | None]:
        """Return whether a TCP connection is allowed at every address, and the rule that decides."""
        verdict = self._connections.verdict(sender, self._connections.arrivals(receivers, port))
        return verdict.passes, verdict.origin

    def kinds_of_pods(self, workload: Workload, namespace: str | None) -> tuple[list[Labelled], list[str]] | None:
        """Return the kinds of pods that could be in a namespace, as labels, and the selectors that distinguish them.

        The kinds are those of senders to a workload. For the namespace, None means any undeclared one. Returns None if
        there are too many kinds.
        """
        (arrival, *_) = self._connections.arrivals(receive(workload, self._world), EVERY_PORT.first)
        home = namespace if namespace is not None else _UNDECLARED_NAMESPACE
        key = home, id(arrival.program)
        if key not in self._kinds_of_pods:
            selectors = list(dict.fromkeys(selectors_about(self._engine, self._world, arrival.receiver, home)))
            try:
                senders = imagine_senders(home, self._world, selectors)
                kinds = [str(sender.values[SOURCE_LABELS]) for sender in senders]
            except TooManyKinds:
                self._kinds_of_pods[key] = None
            else:
                self._kinds_of_pods[key] = selectors, kinds
        return self._kinds_of_pods[key]

    def layer(self, workload: Workload) -> Layer:
        """Return the network layer before a workload. Workloads with equal layers share one object."""
        receivers = receive(workload, self._world)
        layers = self._engine.program(end).layers if isinstance(end := receivers[0].end, NetworkEnd) else ()
        signature = self._signature(workload, receivers, layers)
        layer = self._layers.get(signature)
        if layer is None:
            layer = self._layers[signature] = self._compute(workload, layers)
        return layer

    def _signature(self, workload: Workload, receivers: Sequence[Receiver], layers: Sequence[Layer]) -> Hashable:
        looked_at = self._looked_at.union(*(layer.looks_at for layer in layers))
        seen = tuple(each.values.get(attribute, UNKNOWN) for each in receivers for attribute in sorted(looked_at))
        names = tuple(workload.ports) if PORT_NAME in looked_at else ()
        node = workload.host_ip if VICINITY in looked_at else None
        itself = workload.key if workload.is_pod and self._do_policies_read_vicinity(workload, layers) else None
        return tuple(map(id, layers)), seen, names, node, itself

    def _do_policies_read_vicinity(self, workload: Workload, layers: Sequence[Layer]) -> bool:
        """Return whether a policy at either end of a connection from a workload to itself reads that it is one."""
        sending = self._engine.program(NetworkEnd(workload.key, Direction.EGRESS)).layers
        return any(VICINITY in layer.looks_at for layer in (*layers, *sending))

    def _compute(self, workload: Workload, layers: Sequence[Layer]) -> Layer:
        own = [atom for layer in layers for atom in layer.atoms(observed=False) if PORT in mentions(atom)]
        asked: dict[Is | Computed, None] = dict.fromkeys((*own, *self._asked_of_ports))
        if PORT_NAME in self._looked_at.union(*(layer.looks_at for layer in layers)):
            # Each port with a name is its own class
            asked |= {Is(PORT, OneOf(frozenset({port.number}))): None for port in workload.ports if port.name}
        cases: dict[Chain, list[Predicate]] = {}
        for ports in port_classes(asked, sorted({port.number for port in workload.ports})):
            number = ports.facts.values[PORT]
            assert isinstance(number, int)  # noqa: S101 - a class has a port
            named = [Is(PORT, OneOf(frozenset(ports.ports)))] if ports.ports else []
            stretches = [ALWAYS if stretch == EVERY_PORT else Is(PORT, stretch) for stretch in ports.ranges]
            chain = self._chain(workload, number, layers)
            cases.setdefault(chain, []).append(any_of([*named, *(stretches if ports.others else [])]))
        # Named ports come first, because a range may contain them
        listed = sorted(
            ((when, chain) for chain, conditions in cases.items() for when in conditions),
            key=lambda case: not isinstance(case[0], Is) or not isinstance(case[0].matcher, OneOf),
        )
        return Layer(_AT_ENDS, Chain(()), tuple(SelectorCase(when, chain) for when, chain in listed))

    def _chain(self, workload: Workload, port: int, layers: Sequence[Layer]) -> Chain:
        receivers = receive(workload, self._world, port)
        arrivals = self._connections.arrivals(receivers, port)
        accepted: dict[Origin | None, set[str]] = defaultdict(set)
        denied: dict[Origin | None, set[str]] = defaultdict(set)
        steps: list[Step] = []
        for identity, senders in self._accounts.items():
            verdicts = [(sender, self._connections.verdict(sender, arrivals)) for sender in senders]
            refused = {_key(sender): verdict for sender, verdict in verdicts if not verdict.passes}
            if not refused:
                accepted[verdicts[0][1].origin].add(identity)
                continue
            allowed = {_key(sender): verdict for sender, verdict in verdicts if _key(sender) not in refused}
            who = Is(IDENTITY, OneOf(frozenset({identity})))
            if allowed:
                pods = Is(SOURCE_WORKLOAD, OneOf(frozenset(allowed)))
                steps.append(_step(all_of([who, pods]), Effect.ACCEPT, next(iter(allowed.values())).origin))
            if any(verdict.may_pass for verdict in refused.values()) or len(verdicts) > len(refused) + len(allowed):
                steps += _steps_for_partial_access(who, [each for each in verdicts if _key(each[0]) in refused])
            denied[next(iter(refused.values())).origin].add(identity)
        steps += [_step(_named(names), Effect.ACCEPT, origin) for origin, names in accepted.items()]
        steps += [_step(_named(names), Effect.DENY, origin) for origin, names in denied.items()]
        for namespace in self._world.namespaces_in_use():
            who = Is(IDENTITY, AccountsOf(self._settings.trust_domain, namespace))
            steps += self._steps_for_undeclared_pods(who, namespace, arrivals)
        others = Is(IDENTITY, AnyAccount(self._settings.trust_domain))
        steps += self._steps_for_undeclared_pods(others, _UNDECLARED_NAMESPACE, arrivals)
        if workload.host_ip is not None:  # the node of a pod may always call it
            node = Is(ADDRESS, InNetwork((parse_network(workload.host_ip),)))
            steps.append(_step(node, Effect.ACCEPT, _FROM_NODE))
        stage = FirstMatch("network", tuple(steps), Effect.PASS, Refusal.CLOSED)
        return Chain((stage, *(self._outside(receivers[0], port, layers))))

    def _steps_for_undeclared_pods(
        self, who: Predicate, namespace: str, arrivals: Sequence[ReceiverEnd]
    ) -> Iterator[Step]:
        """Yield the steps for pods of a namespace that are in no manifest. They may have any labels."""
        imagined = self._imagine(namespace, arrivals[0])
        if imagined is None and not self._connections.verdict(any_pod(namespace, self._world), arrivals).may_pass:
            yield _step(who, Effect.DENY, None)
            return
        if imagined is None:
            yield _step(all_of([who, Is(SOURCE_LABELS, Present())]), Effect.ACCEPT, None)  # it depends on the labels
            yield _step(who, Effect.DENY, None)
            return
        verdicts = [(sender, self._connections.verdict(sender, arrivals)) for sender in imagined.senders]
        allowed = [(sender, verdict) for sender, verdict in verdicts if verdict.passes]
        if allowed:
            which = imagined.labelled([sender for sender, _ in allowed])
            yield _step(all_of([who, which]), Effect.ACCEPT, allowed[0][1].origin)
        conditional: dict[Predicate, list[Sender]] = defaultdict(list)
        for sender, verdict in verdicts:
            if not verdict.passes and verdict.may_pass:
                conditional[verdict.when].append(sender)
        for when, some in conditional.items():
            yield _step(all_of([who, imagined.labelled(some), when]), Effect.ACCEPT, None)
        if len(allowed) < len(verdicts):
            yield _step(who, Effect.DENY, next(verdict.origin for _, verdict in verdicts if not verdict.passes))

    def _imagine(self, namespace: str, arrival: ReceiverEnd) -> _ImaginedPods | None:
        """Return a pod of each kind that could be in a namespace, or None if there are too many kinds."""
        key = namespace, id(arrival.program)
        if key not in self._imagined:
            selectors = tuple(dict.fromkeys(selectors_about(self._engine, self._world, arrival.receiver, namespace)))
            try:
                senders = tuple(imagine_senders(namespace, self._world, selectors))
                self._imagined[key] = _ImaginedPods(senders, selectors)
            except TooManyKinds:
                self._imagined[key] = None
        return self._imagined[key]

    def _outside(self, receiver: Receiver, port: int, layers: Sequence[Layer]) -> Iterator[Stage]:
        """Yield the stages for callers that are not pods: they read only addresses."""
        known: dict[Attribute, Known] = {**receiver.values, **_OUTSIDE_VALUES, PORT: port}

        def settle(atom: Is | Computed) -> Predicate:
            if isinstance(atom, Computed):
                return atom
            if atom.attribute in known:
                return ALWAYS if atom.accepts(known[atom.attribute]) else any_of(())
            return Is(ADDRESS, atom.matcher) if atom.attribute == PACKET_SOURCE else atom

        def settle_rule(rule: Rule) -> Rule:
            return Rule(rewrite(rule.when, settle), rule.origin)

        for layer in layers:
            chain = next((case.chain for case in layer.cases if rewrite(case.when, settle) == ALWAYS), layer.otherwise)
            yield from (rewrite_stage(stage, settle_rule) for stage in chain.stages)


_OUTSIDE_VALUES: dict[Attribute, Known] = {**OUTSIDE, TRANSPORT: "TCP", VICINITY: None}
"""Known attributes of callers that are not pods."""


def _step(who: Predicate, effect: Effect, origin: Origin | None) -> Step:
    return Step(Rule(who, origin if origin is not None else _ISOLATED if effect is Effect.DENY else _OPEN), effect)


def _steps_for_partial_access(who: Predicate, verdicts: Sequence[tuple[Sender, NetworkVerdict]]) -> Iterator[Step]:
    """Yield the steps that allow some connections of pods: from one of several addresses, or for unknown values."""
    pods: dict[Predicate, list[str]] = defaultdict(list)
    addresses = Counter(_key(sender) for sender, _ in verdicts)
    for sender, verdict in verdicts:
        if verdict.may_pass:
            is_one = addresses[_key(sender)] == 1
            at = ALWAYS if is_one else equal(PACKET_SOURCE, sender.values.get(PACKET_SOURCE))
            pods[all_of([at, verdict.when])].append(_key(sender))
    for when, keys in pods.items():
        yield _step(all_of([who, Is(SOURCE_WORKLOAD, OneOf(frozenset(keys))), when]), Effect.ACCEPT, None)


def _labels(sender: Sender) -> str:
    return str(sender.values[SOURCE_LABELS])


def _key(sender: Sender) -> str:
    return "" if sender.workload is None else sender.workload.key


def _named(identities: Iterable[str]) -> Predicate:
    return Is(IDENTITY, OneOf(frozenset(identities)))
