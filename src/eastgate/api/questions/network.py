"""The two ends of connections, as the network sees them: pods with labels and addresses, and addresses elsewhere.

A caller may stand for several senders: an account for all of its pods. Who has an account of which no manifest has a
pod is a pod of its namespace with any labels: one of each kind that policies tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from eastgate.api.questions import ends
from eastgate.api.questions.arrivals import EntryPoint, Values, account_named
from eastgate.api.questions.derived import address_of, transport_of
from eastgate.api.questions.ends import source_of
from eastgate.cluster import PodsAcross, PodsMatching, PodsOfAccount, Target, Workload, World
from eastgate.cluster.points import Direction, NetworkEnd, Point, UnseenHop
from eastgate.cluster.question import Question
from eastgate.cluster.targets import GatewayNamed
from eastgate.ir import Known, Labelled, labels_text
from eastgate.ir.attributes import (
    DESTINATION_ADDRESS,
    DESTINATION_DOMAIN,
    DESTINATION_LABELS,
    DESTINATION_NAMESPACE,
    DESTINATION_NODE,
    PACKET_SOURCE,
    PORT,
    PORT_NAME,
    SERVICE,
    SOURCE_LABELS,
    SOURCE_NAMESPACE,
    SOURCE_WORKLOAD,
    VICINITY,
    Attribute,
)
from eastgate.ir.labels import Selector
from eastgate.records import dataclass
from eastgate.settings import Settings
from eastgate.symbolic.cells import representatives

__all__ = ["Receiver", "Sender", "cross_network", "is_connected", "receivers_of", "selectors_in", "senders_of"]

_MOST_LABELLINGS = 4096
_GATEWAY_LABEL = "gateway.networking.k8s.io/gateway-name"
_OUTSIDE: Values = {SOURCE_NAMESPACE: None, SOURCE_LABELS: None}


@dataclass(frozen=True, slots=True, eq=False)
class Sender:
    """Who opens a connection: a pod, where `end` is known, or somebody elsewhere. The network sees `values`."""

    values: Values
    end: NetworkEnd | None = None
    workload: Workload | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Receiver:
    """The end that a connection arrives at. A pod in its node's network has no `end`: no policy selects it."""

    values: Values
    end: NetworkEnd | UnseenHop | None = None
    workload: Workload | None = None


# Senders


def senders_of(
    question: Question,
    caller: Values,
    world: World,
    settings: Settings,
    selectors: Callable[[str], Iterable[Labelled]],
) -> tuple[Sender, ...]:
    """Return everybody whom a caller of a question stands for.

    `selectors` returns those that tell the pods of a namespace apart.
    """
    given = address_of(question.source_ip) if question.source_ip is not None else None
    pod = caller.get(SOURCE_WORKLOAD)
    if isinstance(pod, str):
        return tuple(_pod(world.workloads[pod], world, given))
    source = source_of(question.source, settings)
    account = account_named(source, settings)
    if account is not None:
        pods = [world.workloads[key] for key in sorted(world.select(PodsOfAccount(*account)))]
        if given is not None:
            pods = [pod for pod in pods if given in _addresses(pod, world)] or pods
        if pods:
            return tuple(sender for pod in pods for sender in _pod(pod, world, given))
        return tuple(_imagined(account[0], world, given, selectors(account[0])))
    if isinstance(source, ends.UnknownCaller):
        return (Sender({}),)
    address = given if given is not None else address_of(source.value) if isinstance(source, ends.Address) else None
    return tuple(_elsewhere(address, world))


def _elsewhere(address: str | None, world: World) -> Iterator[Sender]:
    """Yield who sends from an address, which may be that of a pod."""
    workload = None if address is None else world.by_ip(address)
    if workload is not None:
        yield from _pod(workload, world, address)
    else:
        yield Sender(_OUTSIDE if address is None else {**_OUTSIDE, PACKET_SOURCE: address})


def _pod(workload: Workload, world: World, given: str | None) -> Iterator[Sender]:
    """Yield a pod as a sender, from each of its addresses."""
    values, end = _OUTSIDE, None
    if not _is_on_host(workload):
        values = _labelled(workload.namespace, workload.labels, world)
        end = NetworkEnd(workload.key, Direction.EGRESS)
    for address in (given,) if given is not None else _addresses(workload, world) or (None,):
        yield Sender(values if address is None else {**values, PACKET_SOURCE: address}, end, workload)


def _is_on_host(workload: Workload) -> bool:
    """Return whether no policy of the network is about a workload: it is no pod, or in the network of its node."""
    return workload.host_network or not workload.is_pod


def _addresses(workload: Workload, world: World) -> tuple[str, ...]:
    """Return the addresses of a workload: one of each family, where the network has two."""
    if workload.host_network:
        return (workload.host_ip,) if workload.host_ip is not None else ()
    first = world.address_of(workload)
    return workload.ips if first in workload.ips else (first,) if first is not None else ()


def _labelled(namespace: str, labels: Mapping[str, str], world: World) -> Values:
    return {SOURCE_NAMESPACE: labels_text(world.namespace(namespace).labels), SOURCE_LABELS: labels_text(labels)}


def _imagined(namespace: str, world: World, given: str | None, selectors: Iterable[Labelled]) -> Iterator[Sender]:
    """Yield a pod of each kind that could be in a namespace."""
    home = labels_text(world.namespace(namespace).labels)
    kinds = [text for text in representatives(SOURCE_LABELS, list(dict.fromkeys(selectors))) if isinstance(text, str)]
    address: Values = {} if given is None else {PACKET_SOURCE: given}
    for labels in islice(kinds or [""], _MOST_LABELLINGS):
        end = NetworkEnd(f"{namespace}/a pod with the labels {{{labels}}}", Direction.EGRESS, labels)
        yield Sender({SOURCE_NAMESPACE: home, SOURCE_LABELS: labels, **address}, end)


# Receivers


def receivers_of(entry: EntryPoint, question: Question, world: World) -> tuple[Receiver, ...]:
    """Return the ends at which a connection may arrive first on the way of an entry."""
    first = entry.points[0] if entry.points else None
    transport = transport_of(question)
    if isinstance(first, str):
        return tuple(_receiving_pod(world.workloads[first], entry.values, transport, world))
    if isinstance(first, GatewayNamed):
        pods = [world.workloads[key] for key in sorted(world.select(_pods_of(first)))]
        if pods:
            return tuple(receiver for pod in pods for receiver in _receiving_pod(pod, entry.values, transport, world))
        return (Receiver({}, UnseenHop("the caller", str(first))),)
    address = entry.values.get(DESTINATION_ADDRESS)
    if not isinstance(address, str):
        return (Receiver({}, UnseenHop("the caller", entry.where)),)
    elsewhere = dict.fromkeys((DESTINATION_NAMESPACE, DESTINATION_LABELS, PORT_NAME))
    return (Receiver({**elsewhere, DESTINATION_NODE: _node_at(address, world)}),)


def _pods_of(gateway: GatewayNamed) -> Target:
    return PodsMatching(gateway.namespace, Selector.of({_GATEWAY_LABEL: gateway.name}))


def _receiving_pod(workload: Workload, at: Values, transport: str, world: World) -> Iterator[Receiver]:
    """Yield a pod as a receiver, at each of its addresses."""
    port = at.get(PORT)
    values: dict[Attribute, Known] = {DESTINATION_DOMAIN: None}
    if isinstance(port, int):
        values[PORT_NAME] = _port_names(workload, port, transport)
    end = None
    if _is_on_host(workload):
        values |= {DESTINATION_NAMESPACE: None, DESTINATION_LABELS: None}
    else:
        home = labels_text(world.namespace(workload.namespace).labels)
        values |= {
            DESTINATION_NAMESPACE: home,
            DESTINATION_LABELS: labels_text(workload.labels),
            DESTINATION_NODE: None,
        }
        end = NetworkEnd(workload.key, Direction.INGRESS)
    for address in _addresses(workload, world) or (None,):
        placed: Values = {} if address is None else {DESTINATION_ADDRESS: address}
        if end is None and address is not None:
            placed = {**placed, DESTINATION_NODE: _node_at(address, world)}
        yield Receiver({**values, **placed}, end, workload)


def _node_at(address: str, world: World) -> str | None:
    """Return the labels of the node that has an address; None where none has it."""
    return next((labels_text(node.labels) for node in world.nodes.values() if address in node.addresses), None)


def _port_names(workload: Workload, port: int, transport: str) -> Known:
    names = {declared.name for declared in workload.ports if (declared.number, declared.protocol) == (port, transport)}
    texts = tuple(sorted(name for name in names if name))
    return texts if len(texts) > 1 else texts[0] if texts else None


# Both


def is_connected(entry: EntryPoint, sender: Sender, receiver: Receiver) -> bool:
    """Return whether a connection can be from one to the other: not between addresses of two families."""
    start = sender.values.get(PACKET_SOURCE)
    end = receiver.values.get(DESTINATION_ADDRESS) or entry.values.get(DESTINATION_ADDRESS)
    return not isinstance(start, str) or not isinstance(end, str) or (":" in start) == (":" in end)


def cross_network(entry: EntryPoint, sender: Sender, receiver: Receiver) -> EntryPoint:
    """Return an entry with the ends of the connection before the points on its way."""
    before: tuple[Point, ...] = tuple(end for end in (sender.end, receiver.end) if end is not None)
    values = {**entry.values, **receiver.values, **sender.values, **_vicinity(entry, sender, receiver)}
    return EntryPoint(entry.where, (*before, *entry.points), values, entry.hides_http)


def _vicinity(entry: EntryPoint, sender: Sender, receiver: Receiver) -> Values:
    """Return what is known of how near both ends are. Pods of one template may be one and the same, or not."""
    sending, receiving = sender.workload, receiver.workload
    if sending is not None and receiving is not None and sending.key == receiving.key:
        if entry.values.get(SERVICE) is not None:
            return {VICINITY: None}
        return {} if sending.derived else {VICINITY: "itself"}
    address, packets = receiver.values.get(DESTINATION_ADDRESS), sender.values.get(PACKET_SOURCE)
    address = address or entry.values.get(DESTINATION_ADDRESS)
    is_from_node = receiving is not None and receiving.host_ip is not None and packets == receiving.host_ip
    is_to_node = sending is not None and sending.host_ip is not None and address == sending.host_ip
    return {VICINITY: "node" if is_from_node or is_to_node else None}


def selectors_in(targets: Iterable[Target], namespace: str, world: World) -> Iterator[Labelled]:
    """Yield the selectors by which policies select pods of a namespace."""
    for target in targets:
        match target:
            case PodsMatching(home, selector) if home == namespace:
                yield Labelled(selector)
            case PodsAcross(namespaces, pods) if namespaces.matches(world.namespace(namespace).labels):
                yield Labelled(pods)
