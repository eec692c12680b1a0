"""From a NetworkPolicy that has been checked to its meaning; the cluster-wide kinds are in `cluster_meaning.py`."""

from __future__ import annotations

from eastgate.cluster import PodsMatching
from eastgate.cluster.points import Direction
from eastgate.cluster.resources import is_audit, selector_of
from eastgate.dialects.network.lowering import PEERS, PortItem
from eastgate.dialects.network.model import NetworkPolicy, NetworkRule, NetworkTier
from eastgate.dialects.network.rules import Restriction, make_rule
from eastgate.dialects.network.values import Network, network_of
from eastgate.ir import Effect, PolicyRef, Predicate
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings

_PEERS = {Direction.INGRESS: "from", Direction.EGRESS: "to"}


def network_policy(document: Document, root: Node, _settings: Settings) -> NetworkPolicy:
    """Return the meaning of a NetworkPolicy."""
    spec = root.get("spec")
    ref = PolicyRef(document.kind, document.home, document.name, document.group)
    pods = spec.get("podSelector") if spec is not None else None
    types = spec.get("policyTypes") if spec is not None else None
    rules = {direction: _rules(spec, direction, ref) for direction in Direction}
    listed = {item.text for item in types or ()}
    in_force = {
        Direction.INGRESS: "Ingress" in listed or not listed,
        Direction.EGRESS: "Egress" in listed or (not listed and bool(rules[Direction.EGRESS])),
    }
    return NetworkPolicy(
        ref=ref,
        span=document.span,
        targets=(PodsMatching(document.home, selector_of(pods)),),
        tier=NetworkTier.NAMESPACED,
        priority=0,
        rules={direction: rules[direction] for direction in Direction if in_force[direction]},
        subject_span=pods.span if pods is not None else document.span,
        unused=tuple(rule for direction in Direction if not in_force[direction] for rule in rules[direction]),
        types_span=types.span if types is not None and listed else None,
        audit=is_audit(root),
    )


def _rules(spec: Node | None, direction: Direction, ref: PolicyRef) -> tuple[NetworkRule, ...]:
    listed = spec.get(direction) if spec is not None else None
    return tuple(_rule(node, index, direction, ref) for index, node in enumerate(listed or ()))


def _rule(node: Node, index: int, direction: Direction, ref: PolicyRef) -> NetworkRule:
    """Return the meaning of a rule. An empty list of peers or ports is as good as none."""
    peers, ports = _filled(node.get(_PEERS[direction])), _filled(node.get("ports"))
    namespace = ref.namespace or ""
    return make_rule(
        ref,
        index,
        node,
        direction,
        ("ALLOW", Effect.ACCEPT),
        peers=Restriction(peers, tuple(_peer(peer, direction, namespace) for peer in peers))
        if peers is not None
        else None,
        ports=Restriction(ports, tuple(_port(port) for port in ports)) if ports is not None else None,
    )


def _filled(node: Node | None) -> Node | None:
    return node if node is not None and list(node) else None


def _peer(node: Node, direction: Direction, namespace: str) -> Predicate:
    end = PEERS[direction]
    if (block := node.get("ipBlock")) is not None:
        return end.networks([_network(block["cidr"])], [_network(excepted) for excepted in block.get("except") or ()])
    pods = selector_of(node.get("podSelector"))
    if (namespaces := node.get("namespaceSelector")) is not None:
        return end.pods(selector_of(namespaces), pods)
    return end.pods_in(namespace, pods)


def _network(node: Node) -> Network:
    network = network_of(node.text)
    assert network is not None  # noqa: S101 - the shape has checked it
    return network


def _port(node: Node) -> PortItem:
    protocol, port, last = node.get("protocol"), node.get("port"), node.get("endPort")
    transport = protocol.text if protocol is not None else "TCP"
    if port is None:
        return PortItem(transport)
    if isinstance(port.value, str):
        return PortItem(transport, name=port.value)
    return PortItem(transport, port.number, last.number if last is not None else None)
