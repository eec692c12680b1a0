"""Connections of a question: every pair of a sender and a receiver that the network sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product

from eastgate.authority.questions.derived import transport_of
from eastgate.authority.questions.senders import Receiver, Sender, port_names, receive, receivers_of, send
from eastgate.cluster import (
    Workload,
    World,
)
from eastgate.cluster.ends import EntryPoint, Values
from eastgate.cluster.points import Direction, NetworkEnd, Point, UnseenHop
from eastgate.cluster.question import Question
from eastgate.ir import (
    Is,
    Known,
    Layer,
    Matcher,
    OneOf,
)
from eastgate.ir.attributes import (
    DESTINATION_ADDRESS,
    PACKET_SOURCE,
    PORT,
    PORT_NAME,
    SERVICE,
    VICINITY,
)
from eastgate.ir.symbolic.cells import representatives


def connections_of(
    entry: EntryPoint, senders: Callable[[Receiver], Iterable[Sender]], question: Question, world: World
) -> Iterator[EntryPoint]:
    """Yield every connection on the way of an entry, each with its two ends. ALL connections must be allowed.

    `senders` returns the possible senders to a receiver. A gateway opens a connection of its own to each pod behind it.
    If the pods at either side are unknown, the verdict there is unknown too.
    """
    for receiver in receivers_of(entry, question, world):
        behind: list[EntryPoint] = []
        unseen: tuple[Point, ...] = ()
        if entry.onward is not None and receiver.workload is not None:
            behind = list(_behind_gateway(receiver.workload, *entry.onward, question, world))
        if entry.onward is not None and not behind:
            unseen = (UnseenHop(_hop_start(receiver, entry), f"Service {entry.onward[0]}"),)
        every = list(senders(receiver))
        for sender in [sender for sender in every if share_family(sender, receiver)] or every:
            crossed = cross_network(entry, sender, receiver)
            yield replace(crossed, points=(*crossed.points, *unseen))
        yield from (replace(each, guard=entry.guard) for each in behind)


def _hop_start(receiver: Receiver, entry: EntryPoint) -> str:
    if receiver.workload is not None:
        return receiver.workload.key
    return receiver.end.end if isinstance(receiver.end, UnseenHop) else entry.where


def _behind_gateway(
    gateway: Workload, key: str, port: int | None, question: Question, world: World
) -> Iterator[EntryPoint]:
    """Yield the connections from a pod of a gateway to the pods of a Service; none if no manifest has such pods."""
    service = world.services.get(key)
    if service is None:
        return
    for pod in (world.workloads[pod] for pod in world.pods_of(key)):
        for number in world.target_ports(service, port, pod):
            at = EntryPoint(f"{gateway.key} -> {pod.key}", (), {PORT: number, SERVICE: key})
            pairs = list(product(send(gateway, world), receive(pod, world, number, transport_of(question))))
            for sender, receiver in [pair for pair in pairs if share_family(*pair)] or pairs:
                yield cross_network(at, sender, receiver)


def cross_network(entry: EntryPoint, sender: Sender, receiver: Receiver) -> EntryPoint:
    """Return an entry with the ends of the connection before the points on its way.

    If the receiver is unknown, the sender's end is left out too, since neither can be decided.
    """
    ends_known = (receiver.end,) if isinstance(receiver.end, UnseenHop) else (sender.end, receiver.end)
    before: tuple[Point, ...] = tuple(end for end in ends_known if end is not None)
    is_direct, address = entry.values.get(SERVICE) is None, entry.values.get(DESTINATION_ADDRESS)
    vicinity = vicinity_of(sender, receiver, is_direct=is_direct, address=address)
    values = {**entry.values, **receiver.values, **sender.values, **vicinity}
    points = (*before, *entry.points)
    return replace(entry, points=points, values=values, onward=None)


def share_family(sender: Sender, receiver: Receiver) -> bool:
    """Return whether both ends may have addresses of one IP family: otherwise they cannot connect."""
    packets, address = sender.values.get(PACKET_SOURCE), receiver.values.get(DESTINATION_ADDRESS)
    return packets is None or address is None or (":" in str(packets)) == (":" in str(address))


def vicinity_of(sender: Sender, receiver: Receiver, *, is_direct: bool, address: Known = None) -> Values:
    """Return the vicinity of two ends: one pod, one node, or None. `is_direct`: `address` is the receiver's, not a
    Service's.

    A template means any number of pods, and which of them calls which is unknown.
    """
    sending, receiving = sender.workload, receiver.workload
    if sending is not None and receiving is not None and sending.key == receiving.key and is_direct:
        return {} if sending.derived else {VICINITY: "itself"}
    called = receiver.values.get(DESTINATION_ADDRESS) or address
    packets = sender.values.get(PACKET_SOURCE)
    is_from_node = receiving is not None and receiving.host_ip is not None and packets == receiving.host_ip
    is_to_node = sending is not None and sending.host_ip is not None and called == sending.host_ip
    return {VICINITY: "node" if is_from_node or is_to_node else None}


def name_ports(entry: EntryPoint, layers: Iterable[Layer], question: Question, world: World) -> Iterator[Values]:
    """Yield the possible ports of a connection, each with its names, if rules look at names and the question has no
    port.

    The ports are one of each class that rules distinguish, and all ports with names.
    """
    asked = [atom for layer in layers for atom in layer.atoms(observed=True) if isinstance(atom, Is)]
    workload = workload_at(entry.points, world)
    is_told = {PORT, PORT_NAME}.isdisjoint(entry.values) and any(atom.attribute == PORT_NAME for atom in asked)
    if workload is None or not is_told:
        yield {}
        return
    named: Matcher = OneOf(frozenset(port.number for port in workload.ports if port.name))
    matchers = [atom.matcher for atom in asked if atom.attribute == PORT]
    for port in representatives(PORT, [*matchers, named]):
        if isinstance(port, int):
            yield {PORT: port, PORT_NAME: port_names(workload, port, transport_of(question))}


def workload_at(points: Iterable[Point], world: World) -> Workload | None:
    """Return the workload that a connection arrives at; None if it is not a workload, or unknown."""
    for point in points:
        if isinstance(point, str):
            return world.workloads.get(point)
        if isinstance(point, NetworkEnd) and point.direction is Direction.INGRESS:
            return world.workloads.get(point.workload)
    return None
