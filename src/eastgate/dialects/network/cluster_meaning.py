"""From a cluster-wide policy that has been checked to its meaning: three kinds, which name some things otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eastgate.cluster import PodsAcross
from eastgate.cluster.points import Direction
from eastgate.cluster.resources import is_audit, selector_of
from eastgate.dialects.network.lowering import PEERS, PortItem, in_domains, on_nodes
from eastgate.dialects.network.model import NetworkPolicy, NetworkRule, NetworkTier
from eastgate.dialects.network.rules import Restriction, make_rule
from eastgate.dialects.network.values import strict_network_of
from eastgate.ir import Effect, PolicyRef, Predicate
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings

_PEERS = {Direction.INGRESS: "from", Direction.EGRESS: "to"}
_EFFECTS: Final = {
    "Accept": ("ACCEPT", Effect.ACCEPT),
    "Allow": ("ALLOW", Effect.ACCEPT),
    "Deny": ("DENY", Effect.DENY),
    "Pass": ("PASS", Effect.PASS),
}
_TRANSPORTS: Final = ("tcp", "udp", "sctp")


def admin_policy(document: Document, root: Node, _settings: Settings) -> NetworkPolicy:
    """Return the meaning of an AdminNetworkPolicy."""
    return _policy(document, root, NetworkTier.ADMIN)


def baseline_policy(document: Document, root: Node, _settings: Settings) -> NetworkPolicy:
    """Return the meaning of the BaselineAdminNetworkPolicy."""
    return _policy(document, root, NetworkTier.BASELINE)


def cluster_policy(document: Document, root: Node, _settings: Settings) -> NetworkPolicy:
    """Return the meaning of a ClusterNetworkPolicy."""
    return _policy(document, root, NetworkTier(root["spec"]["tier"].text))


def _policy(document: Document, root: Node, tier: NetworkTier) -> NetworkPolicy:
    spec = root["spec"]
    ref = PolicyRef(document.kind, None, document.name, document.group)
    rules = {
        direction: tuple(_rule(node, index, direction, ref) for index, node in enumerate(spec.get(direction) or ()))
        for direction in Direction
    }
    priority = spec.get("priority")
    return NetworkPolicy(
        ref=ref,
        span=document.span,
        targets=(_subject(spec["subject"]),),
        tier=tier,
        priority=priority.number if priority is not None else 0,
        rules={direction: listed for direction, listed in rules.items() if listed},
        subject_span=spec["subject"].span,
        audit=is_audit(root),
    )


def _subject(node: Node) -> PodsAcross:
    namespaces, pods = node.get("namespaces"), node.get("pods")
    if pods is None:
        return PodsAcross(selector_of(namespaces), selector_of(None))
    return PodsAcross(selector_of(pods.get("namespaceSelector")), selector_of(pods["podSelector"]))


def _rule(node: Node, index: int, direction: Direction, ref: PolicyRef) -> NetworkRule:
    peers = node[_PEERS[direction]]
    ports = node.get("protocols") or node.get("ports")
    return make_rule(
        ref,
        index,
        node,
        direction,
        _EFFECTS[node["action"].text],
        peers=Restriction(peers, tuple(_peer(peer, direction) for peer in peers)),
        ports=Restriction(ports, tuple(_ports(ports))) if ports is not None else None,
    )


def _peer(node: Node, direction: Direction) -> Predicate:
    end = PEERS[direction]
    if (pods := node.get("pods")) is not None:
        return end.pods(selector_of(pods.get("namespaceSelector")), selector_of(pods["podSelector"]))
    if (nodes := node.get("nodes")) is not None:
        return on_nodes(selector_of(nodes))
    if (networks := node.get("networks")) is not None:
        parsed = (strict_network_of(network.text) for network in networks)
        return end.networks(network for network in parsed if network is not None)
    if (names := node.get("domainNames")) is not None:
        return in_domains(name.text for name in names)
    return end.pods(selector_of(node["namespaces"]), selector_of(None))


def _ports(nodes: Node) -> Iterator[PortItem]:
    for node in nodes:
        name = node.get("destinationNamedPort") or node.get("namedPort")
        if name is not None:
            yield PortItem(None, name=name.text)
        elif (number := node.get("portNumber")) is not None:
            yield PortItem(_transport(number), number["port"].number)
        elif (ports := node.get("portRange")) is not None:
            yield PortItem(_transport(ports), ports["start"].number, ports["end"].number)
        else:
            yield next(_numbered(node, transport) for transport in _TRANSPORTS if transport in node)


def _transport(node: Node) -> str:
    protocol = node.get("protocol")
    return protocol.text if protocol is not None else "TCP"


def _numbered(node: Node, transport: str) -> PortItem:
    port = node[transport]["destinationPort"]
    if (ports := port.get("range")) is not None:
        return PortItem(transport.upper(), ports["start"].number, ports["end"].number)
    return PortItem(transport.upper(), port["number"].number)
