"""Network policies at the sidecars of a local mesh: their decision for each caller and source address at a port.

The network of a cluster enforces these policies. One machine has no such network, so the sidecar of the destination
enforces them, for both ends of a connection: its own ingress and the egress of the caller. A sidecar knows the account
of a caller from its certificate, and the pod of that account from its source address. The engine decides every
connection that these two distinguish, so that sidecars and `check` cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

from eastgate.authority.authority import Authority, decider_of, programs_of
from eastgate.authority.connections import ConnectionVerdict
from eastgate.authority.questions import Question, QuestionError
from eastgate.cluster import GATEWAY_NAME_LABEL, PodsAcross, PodsMatching, Workload, ends
from eastgate.cluster.objects import NAME_LABEL
from eastgate.cluster.points import Direction, NetworkEnd
from eastgate.control.gateways import GatewaySite, gateway_identity
from eastgate.control.sites import ProxySite, identity_of
from eastgate.envoy.plan import PortPlan, plan_port
from eastgate.envoy.plan.decisions import (
    NOT_ENFORCED,
    WOULD_ASK,
    Node,
    ProxyVerdict,
    closers_name,
    isolation_name,
    name_of,
    policy_name,
    verdict_of,
)
from eastgate.ir import UNOPPOSED, Computed, InNetwork, Is, Labelled, Layer, Origin, PolicyRef, Predicate, Refusal
from eastgate.ir.attributes import ADDRESS, PACKET_SOURCE, PORT, PORT_NAME, SOURCE_NAMESPACE, Attribute
from eastgate.ir.labels import Selector
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    IdentityCell,
    OtherAccounts,
    OtherIdentities,
)
from eastgate.ir.symbolic.names import MeshNames
from eastgate.ir.symbolic.trees import choice

_MACHINE = IPv4Network("127.0.0.0/8")  # all callers of a local mesh are on this machine
_UNDECIDED = ProxyVerdict(False, int(Refusal.CLOSED), NOT_ENFORCED)
_ANONYMOUS = ends.ANONYMOUS
# A caller whose certificate names no account of the mesh.
_NO_ACCOUNT = ends.SpiffeId("spiffe://other.invalid/caller")


class NetworkDecisions:
    """The decisions of network policies at all ports of a mesh, for one state of authority and sites."""

    def __init__(
        self, authority: Authority, sites: Mapping[str, ProxySite], gateways: Mapping[str, GatewaySite]
    ) -> None:
        self.authority = authority
        self.version = programs_of(authority).version
        self.names = MeshNames(authority.settings)
        self.callers: dict[str, list[str]] = {}  # addresses, by identity
        self.addresses: dict[str, str] = {}  # identities, by address
        self.gateways: dict[str, list[tuple[str, tuple[Workload, ...]]]] = {}  # address and pods, by identity
        world, settings = authority.world, authority.settings
        for key, site in sorted(sites.items()):
            identity = self.addresses[site.address] = str(identity_of(world.workloads[key], settings))
            self.callers.setdefault(identity, []).append(site.address)
        for gateway in gateways.values():
            labels = Selector.of({GATEWAY_NAME_LABEL: gateway.gateway.name})
            pods = world.select(PodsMatching(gateway.gateway.namespace, labels))
            own = tuple(world.workloads[pod] for pod in sorted(pods))
            identity = gateway_identity(gateway.gateway, settings)
            self.gateways.setdefault(identity, []).append((gateway.address, own))
        self.namespaces = frozenset({*world.namespaces_in_use(), *self._selected_namespaces()})
        self.policies = frozenset(map(policy_name, programs_of(authority).network_refs))
        identities = (each.identity_in(settings.trust_domain) for each in world.workloads.values())
        self.identities = frozenset({*self.callers, *self.gateways, *(each for each in identities if each is not None)})
        self.own_networks = frozenset(self._own_networks())
        audited = (
            policy for policy in programs_of(authority).policies if policy.ref in programs_of(authority).network_refs
        )
        audited_refs = [policy.ref for policy in audited if policy.audit]
        self.untold = _would_be_unknown(audited_refs[0]) if audited_refs else None
        self._ports = tuple(self._port_atoms())
        self._plans: dict[tuple[str, int, tuple[Layer, ...]], PortPlan] = {}
        self._tables: dict[tuple[object, ...], NetworkTable] = {}

    def plan(self, workload: str, port: int, layers: tuple[Layer, ...], known: frozenset[str]) -> PortPlan:
        """Return the plan of a port: network policies decide first, and then these layers of the workload."""
        plan = self._plans.get((workload, port, layers))
        if plan is None:
            table = self._table(workload, port)
            plan = plan_port(layers, port, self.authority.settings, known, table)
            self._plans[workload, port, layers] = plan
        return plan

    def _table(self, workload: str, port: int) -> NetworkTable:
        """Return the decisions at a port. Ports of a workload that no rule distinguishes share them."""
        declared = self.authority.world.workloads[workload].ports
        names = [each.name for each in declared if (each.number, each.protocol) == (port, "TCP") and each.name]
        values: Mapping[Attribute, Sequence[str | int]] = {PORT: [port], PORT_NAME: names}
        distinguished = (any(map(atom.matcher.contains, values[atom.attribute])) for atom in self._ports)
        key = (workload, *distinguished)
        if key not in self._tables:
            self._tables[key] = NetworkTable(self, workload, port)
        return self._tables[key]

    def _port_atoms(self) -> Iterator[Is]:
        """Yield the atoms of rules that are about ports."""
        for atom in self._atoms():
            if isinstance(atom, Is) and atom.attribute in (PORT, PORT_NAME):
                yield atom

    def _atoms(self) -> Iterator[Is | Computed]:
        """Yield the atoms of all network policies, in both directions."""
        engine = programs_of(self.authority)
        ends = ((policy, direction) for policy in engine.network_policies for direction in Direction)
        return (atom for end in ends for layer in engine.layers_of(*end) for atom in layer.atoms(observed=True))

    def unused(self, *, namespace: str | None = None) -> ends.ServiceAccount:
        """Return an account that no manifest declares, in this namespace or in one that no policy names."""
        home = namespace or _unused_name(self.namespaces)
        used = {account[1] for identity in self.identities if (account := self.names.account(identity)) is not None}
        return ends.ServiceAccount(home, _unused_name(used))

    def _selected_namespaces(self) -> Iterator[str]:
        """Yield the namespaces of policies, and those that their subjects or rules name, declared or not."""
        policies = programs_of(self.authority).network_policies
        yield from (policy.ref.namespace for policy in policies if policy.ref.namespace is not None)
        targets = (target for policy in policies for target in policy.targets)
        selectors = [target.namespaces for target in targets if isinstance(target, PodsAcross)]
        asked = (atom for atom in self._atoms() if isinstance(atom, Is) and atom.attribute == SOURCE_NAMESPACE)
        selectors += [atom.matcher.selector for atom in asked if isinstance(atom.matcher, Labelled)]
        for selector in selectors:
            yield from (value for key, value in selector.match_labels if key == NAME_LABEL)
            yield from (value for term in selector.expressions if term.key == NAME_LABEL for value in term.values)

    def _own_networks(self) -> Iterator[IPv4Network]:
        """Yield the addresses on this machine that manifests give to pods and nodes: rules may name them."""
        world = self.authority.world
        for workload in world.workloads.values():
            yield from _on_machine((*workload.ips, *((workload.host_ip,) if workload.host_ip else ())))
        for node in world.nodes.values():
            yield from _on_machine(node.addresses)


class NetworkTable:
    """The decisions of network policies at one port, for each cell of callers.

    `in_force`: the decisions as if all audited policies were in force.
    """

    def __init__(self, decisions: NetworkDecisions, workload: str, port: int, *, in_force: bool = False) -> None:
        self._all = decisions
        self._in_force = in_force
        self._would = (
            None if in_force or decisions.untold is None else NetworkTable(decisions, workload, port, in_force=True)
        )
        self.untold = decisions.untold
        self._pod = decisions.authority.world.workloads[workload]
        self._to = ends.Pod(self._pod.namespace, self._pod.name)
        self._port = port
        self._decided: dict[CallerCell, Node] = {}
        self._pods: dict[str, ProxyVerdict] = {}  # by address
        self._apart: list[IPv4Network] | None = None
        self.identities = decisions.identities
        self.namespaces = decisions.namespaces
        self.policies = decisions.policies

    def decision(self, caller: CallerCell) -> Node:
        """Return the verdict for the callers of a cell, by their source address."""
        if self._is_account(caller):
            known, decide = caller, self._of_account
        else:
            known = caller if isinstance(caller, AnonymousCell) else OtherIdentities()
            decide = self._of_unknown_callers
        if known not in self._decided:
            self._decided[known] = decide(known)
        return self._decided[known]

    def would(self, caller: CallerCell) -> Node:
        """Return the verdict for the callers of a cell as if all audited policies were in force."""
        return self.decision(caller) if self._would is None else self._would.decision(caller)

    def _is_account(self, caller: CallerCell) -> bool:
        if isinstance(caller, IdentityCell):
            return self._all.names.account(caller.identity) is not None
        return isinstance(caller, AccountsIn | OtherAccounts) and caller.domain == self._all.names.trust_domain

    def _of_account(self, caller: CallerCell) -> Node:
        """Decide for an account: for each pod by its address, and else for all of its pods."""
        if isinstance(caller, AccountsIn):
            return self._decide(self._all.unused(namespace=caller.namespace))
        if not isinstance(caller, IdentityCell):
            return self._decide(self._all.unused())
        identity = caller.identity
        gateways = self._all.gateways.get(identity, ())
        pods = {address: self._of_pod(identity, address) for address in self._all.callers.get(identity, ())}
        tests: list[tuple[Predicate, Node]] = [(_at(address), verdict) for address, verdict in pods.items()]
        tests += [(_at(address), self._decide_for_gateway(of_gateway)) for address, of_gateway in gateways]
        return choice(tests, _all_of(pods.values()) if pods else self._decide(ends.SpiffeId(identity)))

    def _of_unknown_callers(self, caller: CallerCell) -> Node:
        """Decide for callers without an account by their address alone, which proves no pod."""
        caller_without_account = _ANONYMOUS if isinstance(caller, AnonymousCell) else _NO_ACCOUNT
        *parts, everything = self._networks()
        outside = {network: verdict for network in parts for verdict in self._decide_within(network, parts)}
        otherwise = next(self._decide_within(everything, parts), self._undecided)
        tests: list[tuple[Predicate, Node]] = [
            (_at(address), self._of_unknown_caller_at(address, caller_without_account, outside, otherwise))
            for address in sorted(self._all.addresses, key=IPv4Address)
        ]
        tests += [(Is(ADDRESS, InNetwork((network,))), verdict) for network, verdict in outside.items()]
        return choice(tests, otherwise)

    def _of_unknown_caller_at(
        self,
        address: str,
        caller_without_account: ends.Source,
        outside: Mapping[IPv4Network, ProxyVerdict],
        otherwise: ProxyVerdict,
    ) -> ProxyVerdict:
        """Decide for a caller without an account at the address of a pod: the caller may be that pod or any other
        caller.

        If addresses prove pods, a caller without a certificate is that pod. A caller with another certificate is not.
        """
        identity = self._all.addresses[address]
        within = [network for network in self._networks() if IPv4Address(address) in network]
        if self._all.names.account(identity) is None or (within[0] not in outside and within[0] != within[-1]):
            return self._decide(caller_without_account, address)
        pod = self._of_pod(identity, address)
        if self._all.authority.world.addresses_prove and caller_without_account == _ANONYMOUS:
            return pod
        return _all_of((pod, outside.get(within[0], otherwise)))

    def _of_pod(self, identity: str, address: str) -> ProxyVerdict:
        """Decide for the pod of an account at an address."""
        if address not in self._pods:
            self._pods[address] = self._decide(ends.SpiffeId(identity), address)
        return self._pods[address]

    def _networks(self) -> list[IPv4Network]:
        """Return the networks of this machine that rules distinguish, the narrowest first. The last is all of it."""
        if self._apart is not None:
            return self._apart
        found = {_MACHINE, *self._all.own_networks}
        for layer in programs_of(self._all.authority).program(NetworkEnd(self._pod.key, Direction.INGRESS)).layers:
            for atom in layer.atoms(observed=True):
                if isinstance(atom, Is) and atom.attribute == PACKET_SOURCE and isinstance(atom.matcher, InNetwork):
                    found |= {each for each in atom.matcher.networks if each.version == 4 and each.subnet_of(_MACHINE)}
        self._apart = sorted(found, key=lambda network: (-network.prefixlen, network))
        return self._apart

    def _decide_within(self, network: IPv4Network, parts: list[IPv4Network]) -> Iterator[ProxyVerdict]:
        """Yield the verdict for addresses of a network outside its parts that no pod has; nothing if there are none."""
        inner = [part for part in parts if part != network and part.subnet_of(network)]
        starts = [network[0], *(part[-1] + 1 for part in inner if part[-1] != network[-1])]
        for start in starts:
            address = start
            while address in network and str(address) in self._all.addresses:
                address += 1
            if address in network and not any(address in part for part in inner):
                yield self._decide(_ANONYMOUS, str(address))
                return

    def _decide_for_gateway(self, pods: tuple[Workload, ...]) -> ProxyVerdict:
        """Decide for a gateway as for its pods. Without pods in manifests, it is allowed, as in offline answers."""
        verdicts = [self._decide(ends.Pod(pod.namespace, pod.name)) for pod in pods]
        return _all_of(verdicts) if verdicts else _name(ConnectionVerdict(UNOPPOSED))

    def _decide(self, source: ends.Source, address: str | None = None) -> ProxyVerdict:
        question = Question(source, self._to, self._port, source_ip=address)
        try:
            return _name(decider_of(self._all.authority).decide_connection(question, would=self._in_force))
        except QuestionError:
            return self._undecided

    @property
    def _undecided(self) -> ProxyVerdict:
        """Return the verdict for an undecidable connection: closed, or a note in the log for a would-be decision."""
        return self.untold if self._in_force and self.untold is not None else _UNDECIDED


def _name(verdict: ConnectionVerdict) -> ProxyVerdict:
    outcome, end = verdict.outcome, verdict.end
    if end is None:
        return verdict_of(outcome, 0)
    if not outcome.allowed and outcome.rule is None and verdict.closing:
        return ProxyVerdict(False, outcome.status, closers_name(verdict.closing))
    if not outcome.allowed and outcome.rule is None and verdict.isolating:
        refs = [policy.ref for policy in verdict.isolating]
        return ProxyVerdict(False, outcome.status, isolation_name(str(end.direction), refs))
    named = verdict_of(outcome, len(verdict.isolating))
    has_policy = outcome.rule is not None and outcome.rule.origin.policy is not None
    return replace(named, who=f"{end.direction}/{named.who}") if has_policy else named


def _all_of(verdicts: Iterable[ProxyVerdict]) -> ProxyVerdict:
    """Return the first verdict that denies, else the first unknown one, or else the first: ALL must allow."""
    every = list(verdicts)
    denied = (verdict for verdict in every if not verdict.allowed)
    return next(denied, next((verdict for verdict in every if verdict.is_final), every[0]))


def _would_be_unknown(policy: PolicyRef) -> ProxyVerdict:
    return ProxyVerdict(True, 200, name_of(Origin(policy, 0), 0), would=WOULD_ASK)


def _on_machine(addresses: Iterable[str]) -> Iterator[IPv4Network]:
    networks = (IPv4Network(address) for address in addresses if ":" not in address)
    return (network for network in networks if network.subnet_of(_MACHINE))


def _at(address: str) -> Predicate:
    return Is(ADDRESS, InNetwork((IPv4Network(address),)))


def _unused_name(names: frozenset[str] | set[str]) -> str:
    number = next(number for number in range(len(names) + 1) if f"other-{number}" not in names)
    return f"other-{number}"
