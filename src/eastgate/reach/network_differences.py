"""Comparison of network policies of two sides for connections that no layer before a workload covers.

The verdicts on TCP between pods, and from outside, are part of the answers about callers of a workload. This module
compares UDP, SCTP and egress: connection by connection, between ends that policies distinguish.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.questions.labels import selectors_about
from eastgate.authority.questions.senders import (
    Receiver,
    Sender,
    TooManyKinds,
    imagine_pod,
    imagine_senders,
    receive,
    receive_outside,
    send,
    send_from_outside,
)
from eastgate.basics.records import dataclass
from eastgate.ir import InNetwork, Is, Labelled, Matcher
from eastgate.ir.attributes import (
    DESTINATION_ADDRESS,
    DESTINATION_DOMAIN,
    PACKET_SOURCE,
    PORT,
    SOURCE_LABELS,
    Attribute,
)
from eastgate.ir.symbolic.cells import representatives
from eastgate.reach.network import NetworkReach, network_reach

_MAX_CONNECTIONS = 500_000
_UNUSED_ADDRESS = "203.0.113.7"  # an address that no end has


class TooManyConnections(Exception):  # noqa: N818 - not an error: the comparison has no result
    """There are more connections than the comparison looks at."""


@dataclass(frozen=True, slots=True)
class _ComparedConnection:
    """A connection between two ends, as questions name them."""

    source: str | _ImaginedPod
    to: str
    port: int
    transport: str

    def __str__(self) -> str:
        return f"{self.source} to {self.to}, {self.transport} port {self.port}"


@dataclass(frozen=True, slots=True)
class _ImaginedPod:
    """A pod in no manifest, of a kind that policies of either side distinguish."""

    namespace: str
    labels: str

    def __str__(self) -> str:
        return f"a pod of namespace {self.namespace} with the labels {{{self.labels}}}"


def differing_connection(old: Authority, new: Authority) -> str | None:
    """Return a connection whose network verdict differs between two sides, as text, or None if there is none.

    Raises TooManyConnections.
    """
    if not (programs_of(old).has_network_policies or programs_of(new).has_network_policies):
        return None
    sides = network_reach(old), network_reach(new)
    for connection in _connections(old, new, sides):
        verdicts = {_passes(side, reach, connection) for side, reach in zip((old, new), sides, strict=True)}
        if len(verdicts) > 1:
            return str(connection)
    return None


def _connections(old: Authority, new: Authority, sides: Iterable[NetworkReach]) -> Iterator[_ComparedConnection]:
    atoms = [atom for reach in sides for atom in reach.atoms]
    common = [key for key in old.world.workloads if key in new.world.workloads]
    declared = {port.number for key in common for side in (old, new) for port in side.world.workloads[key].ports}
    named = {port for port in representatives(PORT, _matchers(atoms, PORT)) if isinstance(port, int)}
    ports = sorted(declared | named)
    pods = [f"pod:{key}" for key in common]
    callers = [f"ip:{address}" for address in _addresses(atoms, PACKET_SOURCE)]
    addresses = _addresses(atoms, DESTINATION_ADDRESS)
    names = [f"name:{name}" for name in _domains(atoms)]
    outside = [*(f"ip:{address}" for address in {*addresses, *_nodes(old, new)}), *names]
    imagined = _imagine(old, new, atoms)
    everybody: list[str | _ImaginedPod] = [*pods, *imagined]
    arriving = product([*everybody, *callers], pods, ports, ("UDP", "SCTP"))
    leaving = product(everybody, sorted(outside), ports, ("TCP", "UDP", "SCTP"))
    number = len(ports) * (2 * len(pods) * (len(everybody) + len(callers)) + 3 * len(everybody) * len(outside))
    if number > _MAX_CONNECTIONS:
        raise TooManyConnections
    yield from (_ComparedConnection(*ends) for ends in chain(arriving, leaving))


def _matchers(atoms: Iterable[Is], attribute: Attribute) -> list[Matcher]:
    return list(dict.fromkeys(atom.matcher for atom in atoms if atom.attribute == attribute))


def _addresses(atoms: Iterable[Is], attribute: Attribute) -> list[str]:
    """Return an address of each kind that policies distinguish, at least one."""
    networks: list[Matcher] = [matcher for matcher in _matchers(atoms, attribute) if isinstance(matcher, InNetwork)]
    chosen = representatives(attribute, networks) if networks else []
    return [address for address in chosen if isinstance(address, str)] or [_UNUSED_ADDRESS]


def _nodes(old: Authority, new: Authority) -> Iterator[str]:
    """Yield the addresses of nodes, because policies may treat them differently from addresses near them."""
    for side in (old, new):
        yield from (address for node in side.world.nodes.values() for address in node.addresses)
        yield from (pod.host_ip for pod in side.world.workloads.values() if pod.host_ip is not None)


def _domains(atoms: Iterable[Is]) -> list[str]:
    """Return a domain name of each kind that policies distinguish."""
    matchers = _matchers(atoms, DESTINATION_DOMAIN)
    return [name for name in representatives(DESTINATION_DOMAIN, matchers) if isinstance(name, str)] if matchers else []


def _imagine(old: Authority, new: Authority, atoms: Sequence[Is]) -> list[_ImaginedPod]:
    """Return a pod of each kind that could be in a namespace of both sides. Raises TooManyConnections."""
    asked = [matcher for matcher in _matchers(atoms, SOURCE_LABELS) if isinstance(matcher, Labelled)]
    nobody = Receiver({})
    imagined: list[_ImaginedPod] = []
    for namespace in sorted({*old.world.namespaces_in_use()} & {*new.world.namespaces_in_use()}):
        subjects = [
            each for side in (old, new) for each in selectors_about(programs_of(side), side.world, nobody, namespace)
        ]
        try:
            senders = list(imagine_senders(namespace, old.world, [*subjects, *asked]))
        except TooManyKinds:
            raise TooManyConnections from None
        imagined += [_ImaginedPod(namespace, str(sender.values[SOURCE_LABELS])) for sender in senders]
    return imagined


def _passes(side: Authority, reach: NetworkReach, connection: _ComparedConnection) -> bool:
    receivers = _receivers(side, connection)
    return all(
        reach.passes(sender, receivers, connection.port, connection.transport) for sender in _senders(side, connection)
    )


def _senders(side: Authority, connection: _ComparedConnection) -> tuple[Sender, ...]:
    if isinstance(connection.source, _ImaginedPod):
        return (imagine_pod(connection.source.namespace, connection.source.labels, side.world),)
    kind, _, name = connection.source.partition(":")
    return send(side.world.workloads[name], side.world) if kind == "pod" else send_from_outside(name, side.world)


def _receivers(side: Authority, connection: _ComparedConnection) -> tuple[Receiver, ...]:
    kind, _, name = connection.to.partition(":")
    if kind == "pod":
        return receive(side.world.workloads[name], side.world, connection.port, connection.transport)
    if kind == "name":
        outside = receive_outside(_UNUSED_ADDRESS, side.world)
        return (Receiver({**outside.values, DESTINATION_DOMAIN: name}),)
    return (receive_outside(name, side.world),)
