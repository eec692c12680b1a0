"""Senders and receivers: the two ends of connections as the network sees them, with labels and addresses.

A caller may mean several senders: an account means all of its pods. If no manifest has a pod of the account, the sender
is a pod of its namespace with any labels: one pod of each class that policies distinguish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from eastgate.authority.questions.callers import account_named
from eastgate.authority.questions.derived import address_of, transport_of
from eastgate.basics.records import dataclass
from eastgate.cluster import (
    GATEWAY_NAME_LABEL,
    PodsMatching,
    PodsOfAccount,
    Target,
    Workload,
    World,
    ends,
    service_account_id,
)
from eastgate.cluster.ends import EntryPoint, Values
from eastgate.cluster.points import Direction, NetworkEnd, UnseenHop
from eastgate.cluster.question import Question
from eastgate.cluster.question_errors import UnknownLabelsError
from eastgate.cluster.targets import GatewayNamed
from eastgate.ir import (
    Is,
    Known,
    Labelled,
    known,
    labels_text,
)
from eastgate.ir.attributes import (
    ADDRESS,
    DESTINATION_ADDRESS,
    DESTINATION_DOMAIN,
    DESTINATION_LABELS,
    DESTINATION_NAMESPACE,
    DESTINATION_NODE,
    IDENTITY,
    PACKET_SOURCE,
    PORT,
    PORT_NAME,
    SOURCE_LABELS,
    SOURCE_NAMESPACE,
    SOURCE_WORKLOAD,
    Attribute,
)
from eastgate.ir.labels import Selector
from eastgate.ir.symbolic.cells import OTHER, cells_of_attributes
from eastgate.settings import Settings

_MAX_CLASSES = 4096  # classes of pods that no manifest has
OUTSIDE: Values = {SOURCE_NAMESPACE: None, SOURCE_LABELS: None}
"""The attributes of a sender outside of the cluster, for the network, beside its address."""


class TooManyKinds(Exception):  # noqa: N818 - not an error
    """Policies distinguish more classes of pods than Eastgate considers."""


@dataclass(frozen=True, slots=True, eq=False)
class Sender:
    """The sender of a connection: a pod, if `end` is known, or a sender outside. The network sees `values`."""

    values: Values
    end: NetworkEnd | None = None
    workload: Workload | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Receiver:
    """The end that a connection arrives at. A pod in its node's network has no `end`: no policy selects it."""

    values: Values
    end: NetworkEnd | UnseenHop | None = None
    workload: Workload | None = None


def senders_of(
    question: Question,
    caller: Values,
    world: World,
    settings: Settings,
    selectors: Callable[[str], Iterable[Labelled]],
) -> tuple[Sender, ...]:
    """Return all senders that a caller of a question may mean.

    `selectors` distinguish the pods of a namespace. On one machine, the address of a caller identifies the pod of its
    account, and is no address of the cluster.
    """
    given = address_of(question.source_ip) if question.source_ip is not None else None
    source = question.source
    account = account_named(source, settings)
    pod = caller.get(SOURCE_WORKLOAD)
    if world.is_local and not isinstance(source, ends.UnknownCaller):
        is_known = account is not None or isinstance(pod, str)
        if not is_known or caller.get(IDENTITY) is None:
            proves = world.addresses_prove and caller.get(IDENTITY) is None
            return _senders_at(given or caller.get(ADDRESS), world, proves=proves)
        at = world.placed_at(given) if given is not None else None
        if at is not None and at.identity_in(settings.trust_domain) == caller.get(IDENTITY):
            return send(at, world)
        given = None
    if isinstance(pod, str):
        return send(world.workloads[pod], world, given)
    if account is not None:
        pods = [world.workloads[key] for key in sorted(world.select(PodsOfAccount(*account)))]
        domain = settings.trust_domain
        identity = service_account_id(domain, *account)
        outside = (each for each in world.workloads.values() if not each.is_pod)
        pods += [each for each in outside if each.identity_in(domain) == identity]
        if given is not None:
            pods = [pod for pod in pods if given in _addresses(pod)] or pods
        if pods:
            return tuple(sender for pod in pods for sender in send(pod, world, given))
        try:
            return tuple(imagine_senders(account[0], world, selectors(account[0]), given))
        except TooManyKinds:
            message = f"no manifest has a pod of `{source}`, and network policies distinguish too many classes of pods"
            raise UnknownLabelsError(account[0], message, "ask for a pod, or give the pods of the account") from None
    if isinstance(source, ends.UnknownCaller):  # it may also be any other pod
        pods = [pod for pod in world.workloads.values() if pod.is_pod]
        return (Sender({}), *(sender for pod in pods for sender in send(pod, world, given)))
    address = given if given is not None else address_of(source.value) if isinstance(source, ends.Address) else None
    return send_from_outside(address, world)


def _senders_at(address: Known, world: World, *, proves: bool) -> tuple[Sender, ...]:
    """Return the senders at an address of the machine: its pod and, unless the address is proof, any other sender."""
    if not isinstance(address, str):
        return (Sender(OUTSIDE),)
    workload, outside = world.placed_at(address), Sender({**OUTSIDE, PACKET_SOURCE: address})
    if workload is None:
        return (outside,)
    return send(workload, world) if proves else (*send(workload, world), outside)


def send_from_outside(address: str | None, world: World) -> tuple[Sender, ...]:
    """Return the senders at an address, which may be that of a pod."""
    if address is None:
        return (Sender(OUTSIDE),)
    workload = world.by_ip(address)
    return (Sender({**OUTSIDE, PACKET_SOURCE: address}),) if workload is None else send(workload, world, address)


def send(workload: Workload, world: World, given: str | None = None) -> tuple[Sender, ...]:
    """Return a workload as a sender from each of its addresses; `given`: the only address, if the question has one."""
    is_plain = workload.is_pod and not workload.host_network
    values = _labelled(workload.namespace, workload.labels, world) if is_plain else OUTSIDE
    end = NetworkEnd(workload.key, Direction.EGRESS) if is_plain else None
    addresses = (given,) if given is not None else _addresses(workload)
    return tuple(
        Sender(values if address is None else {**values, PACKET_SOURCE: address}, end, workload)
        for address in addresses
    )


def _addresses(workload: Workload) -> tuple[str | None, ...]:
    """Return the addresses of a workload in its cluster; without a known address, return one unknown address."""
    own = ((workload.host_ip,) if workload.host_ip else ()) if workload.host_network else workload.ips
    return own or (None,)


def _labelled(namespace: str, labels: Mapping[str, str], world: World) -> Values:
    return {SOURCE_NAMESPACE: labels_text(world.namespace(namespace).labels), SOURCE_LABELS: labels_text(labels)}


def imagine_senders(
    namespace: str, world: World, selectors: Iterable[Labelled], given: str | None = None
) -> Iterator[Sender]:
    """Yield a pod for each class of pods in a namespace that `selectors` distinguish. Raises TooManyKinds."""
    cells, is_all = cells_of_attributes([Is(SOURCE_LABELS, matcher) for matcher in selectors], [SOURCE_LABELS])
    kinds = [text for text in cells[SOURCE_LABELS] if isinstance(text, str) and text != OTHER]
    if not is_all or len(kinds) > _MAX_CLASSES:
        raise TooManyKinds
    for labels in kinds or [""]:
        yield imagine_pod(namespace, labels, world, given)


def imagine_pod(namespace: str, labels: str, world: World, given: str | None = None) -> Sender:
    """Return a pod with these labels that no manifest has."""
    home = labels_text(world.namespace(namespace).labels)
    address: Values = {} if given is None else {PACKET_SOURCE: given}
    end = NetworkEnd(f"{namespace}/a pod with the labels {{{labels}}}", Direction.EGRESS, labels)
    return Sender({SOURCE_NAMESPACE: home, SOURCE_LABELS: labels, **address}, end)


def any_pod(namespace: str, world: World) -> Sender:
    """Return a pod of a namespace with any labels. It has no end, since the verdict about sending is unknown too."""
    return Sender({SOURCE_NAMESPACE: labels_text(world.namespace(namespace).labels)})


def receivers_of(entry: EntryPoint, question: Question, world: World) -> tuple[Receiver, ...]:
    """Return the first receivers of a connection on the way of an entry."""
    first = entry.points[0] if entry.points else None
    transport = transport_of(question)
    if isinstance(first, str):
        return receive(world.workloads[first], world, entry.values.get(PORT), transport)
    if isinstance(first, GatewayNamed):
        pods = [world.workloads[key] for key in sorted(world.select(_pods_of(first)))]
        if pods:
            return tuple(end for pod in pods for end in receive(pod, world, entry.values.get(PORT), transport))
        return (Receiver({}, UnseenHop("the caller", str(first))),)
    address = entry.values.get(DESTINATION_ADDRESS)
    if entry.values.get(DESTINATION_DOMAIN) is not None:
        return (Receiver(_OUTSIDE_PODS),)
    if not isinstance(address, str):
        return (Receiver({}, UnseenHop("the caller", entry.where)),)
    return (receive_outside(address, world),)


_OUTSIDE_PODS: Values = {
    DESTINATION_NAMESPACE: None,
    DESTINATION_LABELS: None,
    DESTINATION_NODE: None,
    PORT_NAME: None,
}
"""The attributes of a receiver that is neither a pod nor a node, for the network, beside its address and its name."""


def receive_outside(address: str, world: World) -> Receiver:
    """Return an address as a receiver that is no pod; it may be that of a node. Its domain names are unknown."""
    return Receiver({**_OUTSIDE_PODS, DESTINATION_NODE: _node_at(address, world), DESTINATION_ADDRESS: address})


def _pods_of(gateway: GatewayNamed) -> Target:
    return PodsMatching(gateway.namespace, Selector.of({GATEWAY_NAME_LABEL: gateway.name}))


def receive(workload: Workload, world: World, port: Known = None, transport: str = "TCP") -> tuple[Receiver, ...]:
    """Return a workload as a receiver at each of its addresses; `port`: the called port, if it is known."""
    addresses = _addresses(workload)
    return tuple(_receive_at(address, workload, world, port, transport) for address in addresses)


def _receive_at(address: str | None, workload: Workload, world: World, port: Known, transport: str) -> Receiver:
    values: dict[Attribute, Known] = {DESTINATION_DOMAIN: None}
    if isinstance(port, int):
        values[PORT_NAME] = port_names(workload, port, transport)
    if address is not None:
        values[DESTINATION_ADDRESS] = address
    if workload.host_network or not workload.is_pod:
        values |= {DESTINATION_NAMESPACE: None, DESTINATION_LABELS: None}
        if address is not None:
            values[DESTINATION_NODE] = _node_at(address, world)
        return Receiver(values, None, workload)
    home = labels_text(world.namespace(workload.namespace).labels)
    values |= {DESTINATION_NAMESPACE: home, DESTINATION_LABELS: labels_text(workload.labels), DESTINATION_NODE: None}
    return Receiver(values, NetworkEnd(workload.key, Direction.INGRESS), workload)


def _node_at(address: str, world: World) -> str | None:
    """Return the labels of the node with an address, or None."""
    return next((labels_text(node.labels) for node in world.nodes.values() if address in node.addresses), None)


def port_names(workload: Workload, port: int, transport: str) -> Known:
    """Return the names of a port of a workload."""
    names = {declared.name for declared in workload.ports if (declared.number, declared.protocol) == (port, transport)}
    return known(sorted(name for name in names if name))
