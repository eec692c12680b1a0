"""Egress: the addresses outside the cluster that network policies let each workload connect to."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from eastgate.authority.authority import programs_of
from eastgate.authority.questions.senders import send
from eastgate.basics.records import dataclass
from eastgate.cluster import Workload
from eastgate.cluster.points import Direction, NetworkEnd
from eastgate.ir import ALWAYS, NEVER, And, InNetwork, Is, Known, Layer, Not, Or, Origin, Predicate
from eastgate.ir.attributes import (
    DESTINATION_ADDRESS,
    DESTINATION_LABELS,
    DESTINATION_NAMESPACE,
    DESTINATION_NODE,
    PORT_NAME,
    TRANSPORT,
    VICINITY,
    Attribute,
)
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.cells import TooManyEntries
from eastgate.ir.symbolic.partial import ArmIndex, Facts
from eastgate.reach.endings import Branch, EnforcementPoint, fold, list_points
from eastgate.reach.requests import port_classes
from eastgate.reports.graph.build import Survey
from eastgate.reports.graph.conditions import allowed_when, explain_branches
from eastgate.reports.graph.model import ANY_ADDRESS, AllowedWay, Bundle, GraphNode, NodeKind, ReachVerdict
from eastgate.reports.graph.selection import Stretches, complement, ports_in, union, with_ports
from eastgate.reports.graph.text import natural

_ELSEWHERE: dict[Attribute, Known] = {
    DESTINATION_NAMESPACE: None,
    DESTINATION_LABELS: None,
    DESTINATION_NODE: None,
    PORT_NAME: None,
    TRANSPORT: "TCP",
    VICINITY: None,
}
"""The facts of a destination outside the cluster, except for its address."""

_IPV6_OFFSET = 1 << 32  # offset of IPv6 addresses, which follow those of IPv4
_EVERY: Stretches = ((0, _IPV6_OFFSET + (1 << 128) - 1),)


@dataclass(frozen=True, slots=True)
class Egress:
    """The addresses outside the cluster that workloads may connect to."""

    bundles: tuple[Bundle, ...] = ()
    nodes: dict[str, GraphNode] = field(default_factory=dict)


def find_egress(surveyed: Survey, *, why: bool) -> Egress:
    """Find the addresses outside the cluster that the selected workloads may connect to."""
    selection, authority = surveyed.selection, surveyed.reach.authority
    if not programs_of(authority).has_network_policies or selection.external or selection.tool is not None:
        return Egress()
    bundles: list[Bundle] = []
    for workload in authority.world.workloads.values():
        node = GraphNode(f"pod:{workload.key}", NodeKind.POD, workload.namespace)
        account = GraphNode(f"sa:{workload.namespace}/{workload.service_account}", NodeKind.SERVICE_ACCOUNT)
        is_chosen = selection.chooses_pod(node, account) and selection.namespace in (None, workload.namespace)
        if not workload.is_pod or workload.host_network or not is_chosen:
            continue
        layers = programs_of(authority).program(NetworkEnd(workload.key, Direction.EGRESS)).layers
        bundles += _bundles(surveyed, workload, layers, why=why)
    chosen = [each for each in bundles if selection.chooses_target(_addresses(each.targets[0]), ())]
    nodes = {each.targets[0]: _addresses(each.targets[0]) for each in chosen}
    return Egress(tuple(_join_sources(chosen)), nodes)


def _join_sources(bundles: Iterable[Bundle]) -> Iterator[Bundle]:
    """Merge workloads that may connect to the same addresses."""
    alike: dict[Bundle, list[str]] = {}
    for bundle in bundles:
        alike.setdefault(replace(bundle, sources=()), []).extend(bundle.sources)
    return (replace(bundle, sources=tuple(sorted(names, key=natural))) for bundle, names in alike.items())


def _addresses(name: str) -> GraphNode:
    return GraphNode(name, NodeKind.ADDRESSES)


def _bundles(surveyed: Survey, workload: Workload, layers: Sequence[Layer], *, why: bool) -> Iterator[Bundle]:
    """Yield a bundle for each set of addresses that a workload may connect to."""
    authority = surveyed.reach.authority
    asked = [atom for layer in layers for atom in layer.atoms(observed=False)]
    (sender, *_) = send(workload, authority.world)
    index = ArmIndex(CallerCells(authority.settings))
    found: dict[tuple[str, AllowedWay], list[tuple[int, int]]] = defaultdict(list)
    wanted = surveyed.selection.port
    classes = port_classes(asked, () if wanted is None else (wanted,))
    named = [number for ports in classes for number in ports.ports]
    for ports in classes:
        if wanted is not None and wanted not in ports.ports:
            continue
        facts = ports.facts.and_(Facts({**sender.values, **_ELSEWHERE}))
        reached = _way(layers, facts, index, why=why)
        if reached is not None:
            every = ports_in(ports.ports, ports.ranges, named)
            found[reached] += every if wanted is None else ((wanted, wanted),)
    for (target, way), listed in found.items():
        verdict = ReachVerdict.ALLOW if way.condition is None else ReachVerdict.DEPENDS
        yield with_ports(Bundle((f"pod:{workload.key}",), (target,), (), False, verdict, (way,)), union(listed))


def _way(layers: Sequence[Layer], facts: Facts, index: ArmIndex, *, why: bool) -> tuple[str, AllowedWay] | None:
    """Return the allowed addresses and the rules that allow them; None if none is allowed."""
    try:
        _, listed = list_points((EnforcementPoint((), tuple(layers)),), facts, index)
    except TooManyEntries:
        return ANY_ADDRESS, AllowedWay("too many conditions to list")
    branches = fold(listed)
    rules = _origins(branches) if why else ()
    allowed = allowed_when(branches)
    stretches = _stretches(allowed)
    if stretches is None:
        return ANY_ADDRESS, AllowedWay(explain_branches(branches, ALWAYS), rules)
    return (_name(stretches), AllowedWay(None, rules)) if stretches else None


def _origins(branches: Iterable[Branch]) -> tuple[Origin, ...]:
    ends = [branch.end for branch in branches if branch.end.allowed]
    return tuple(dict.fromkeys(end.origin for end in ends if end.origin is not None))


# Sets of addresses


def _stretches(allowed: Predicate) -> Stretches | None:
    """Return the addresses that a predicate matches; None if it has other requirements."""
    match allowed:
        case _ if allowed == ALWAYS:
            return _EVERY
        case _ if allowed == NEVER:
            return ()
        case Is(attribute, InNetwork(networks)) if attribute == DESTINATION_ADDRESS:
            return union(_stretch(network) for network in networks)
        case Not(part):
            inner = _stretches(part)
            return None if inner is None else complement(inner, _EVERY)
        case Or(parts):
            every = [_stretches(part) for part in parts]
            return union(s for each in every for s in each or ()) if None not in every else None
        case And(parts):
            outside = [_stretches(part) for part in parts]
            if None in outside:
                return None
            return complement(union(s for each in outside for s in complement(each or (), _EVERY)), _EVERY)
    return None


def _stretch(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> tuple[int, int]:
    base = 0 if network.version == 4 else _IPV6_OFFSET
    return base + int(network.network_address), base + int(network.broadcast_address)


def _name(stretches: Stretches) -> str:
    """Name a set of addresses by its networks, or by the missing networks if that is shorter."""
    names = []
    for family, whole in ((4, (0, _IPV6_OFFSET - 1)), (6, (_IPV6_OFFSET, _EVERY[0][1]))):
        mine = _within(stretches, whole)
        if not mine:
            continue
        missing = _networks(_within(complement(stretches, _EVERY), whole), family)
        listed = _networks(mine, family)
        every = "0.0.0.0/0" if family == 4 else "::/0"
        if len(missing) < len(listed):
            names.append(f"{every} except {', '.join(missing)}" if missing else every)
        else:
            names.append(", ".join(listed))
    return ANY_ADDRESS if stretches == _EVERY else f"ip:{', '.join(names)}"


def _within(stretches: Iterable[tuple[int, int]], whole: tuple[int, int]) -> list[tuple[int, int]]:
    cut = ((max(first, whole[0]), min(last, whole[1])) for first, last in stretches)
    return [stretch for stretch in cut if stretch[0] <= stretch[1]]


def _networks(stretches: Iterable[tuple[int, int]], family: int) -> list[str]:
    def address(number: int) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        return ipaddress.IPv4Address(number) if family == 4 else ipaddress.IPv6Address(number - _IPV6_OFFSET)

    return [
        str(network)
        for first, last in stretches
        for network in ipaddress.summarize_address_range(address(first), address(last))
    ]
