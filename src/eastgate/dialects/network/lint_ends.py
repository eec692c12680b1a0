"""Checks of connections that only one end allows, of DNS, and of pods that policies do not select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from eastgate.cluster import Workload
from eastgate.cluster.points import Direction
from eastgate.dialects.linting import Context, Finding, enumerated
from eastgate.dialects.linting.system import DNS_SERVERS, namespace_labels
from eastgate.dialects.network import lint_codes as codes
from eastgate.dialects.network.lint_peers import pods_of_peer, selectors_of
from eastgate.dialects.network.lint_pods import PodClass, SelectedPods, as_destination
from eastgate.dialects.network.model import NetworkPolicy, NetworkRule, Peer
from eastgate.ir import AllowAny, Effect, Layer, Request, labels_text
from eastgate.ir.attributes import DESTINATION_NAMESPACE, PORT, PORT_NAME, TRANSPORT, VICINITY
from eastgate.ir.labels import Selector

_DNS_LABELS: Final = {"k8s-app": "kube-dns"}
_DNS_PORT: Final = 53
_TUNNEL_PORT: Final = 15008
_DATAPLANE: Final = "istio.io/dataplane-mode"
_MAX_PAIRS: Final = 400


# DNS


def check_dns(context: Context) -> Iterator[Finding]:
    """Report pods that may open connections but cannot resolve names."""
    pods = SelectedPods(context)
    servers = _dns_servers(pods)
    for pod_class in pods.classes:
        layer = pod_class.layers.get(Direction.EGRESS)
        policies = [policy for policy in pod_class.policies if policy.isolates and policy.rules.get(Direction.EGRESS)]
        if layer is None or not policies or not _allows_something(layer):
            continue
        udp, tcp = (
            any(_may_ask(context, layer, *server, transport) for server in servers) for transport in ("UDP", "TCP")
        )
        members = [pod.key for pod in pod_class.members]
        subjects = (*(str(policy.ref) for policy in policies), *members[:3])
        span = policies[0].rules[Direction.EGRESS][0].rule.origin.span
        if not udp:
            message = f"{enumerated(members)} may open connections, but not to the DNS of the cluster"
            help_ = "allow UDP and TCP 53 to pods {k8s-app: kube-dns} of kube-system"
            yield Finding(codes.DNS_BLOCKED, message, span, help_, subjects, cause="DNS")
        elif not tcp:
            message = f"{enumerated(members)} may query the DNS of the cluster by UDP, but not by TCP"
            help_ = "add {protocol: TCP, port: 53}"
            yield Finding(codes.DNS_BY_TCP, message, span, help_, subjects, cause="TCP")


def _dns_servers(pods: SelectedPods) -> list[tuple[Request, int]]:
    """Return the pods that serve DNS with their port, or those of usual clusters if the manifests have none."""
    labelled = [pod for pod in pods.pods if pod.labels.items() >= _DNS_LABELS.items()]
    if labelled:
        found = [as_destination(pod.namespace, pod.labels, pods.world, pods.world.address_of(pod)) for pod in labelled]
        return [(server, _DNS_PORT) for server in found]
    return [
        (
            as_destination(each.namespace, each.labels, pods.world).with_value(
                DESTINATION_NAMESPACE, labels_text(home)
            ),
            each.port,
        )
        for each in DNS_SERVERS
        for home in namespace_labels(each.namespace, pods.world.namespace(each.namespace).labels)
    ]


def _may_ask(context: Context, layer: Layer, server: Request, port: int, transport: str) -> bool:
    return context.can_allow(layer, server.with_value(PORT, port).with_value(TRANSPORT, transport))


def _allows_something(layer: Layer) -> bool:
    return any(
        rule.origin.policy is not None
        for stage in layer.otherwise.stages
        if isinstance(stage, AllowAny)
        for rule in stage.rules
    )


# Both ends


def check_one_side(context: Context) -> Iterator[Finding]:
    """Report rules that allow pods whose own policies refuse the connection on every port."""
    pods = SelectedPods(context)
    for policy in pods.by_policy:
        for direction, rules in policy.rules.items():
            for rule in rules:
                if rule.step.effect is Effect.ACCEPT and not policy.audit:
                    yield from _one_side(pods, policy, direction, rule)


def _one_side(pods: SelectedPods, policy: NetworkPolicy, direction: Direction, rule: NetworkRule) -> Iterator[Finding]:
    selected = [pod for pod in pods.by_policy[policy] if not pod.host_network]
    for peer in rule.peers or ():
        others = pods_of_peer(peer, direction, pods)
        if not selected or not others or len(selected) * len(others) > _MAX_PAIRS:
            continue
        end = Direction.EGRESS if direction is Direction.INGRESS else Direction.INGRESS
        refusing = [other for other in others if not any(pods.opens(other, end, pod) for pod in selected)]
        if refusing and _is_about(peer, direction, all_refuse=len(refusing) == len(others)):
            keys = enumerated([pod.key for pod in refusing])
            toward = enumerated([pod.key for pod in selected])
            preposition = "to" if end is Direction.EGRESS else "from"
            message = f"{policy.ref} allows {keys}, but {end} policies there refuse connections {preposition} {toward}"
            closing = sorted({str(each.ref) for pod in refusing for each in pods.isolating(pod, end)})
            help_ = f"allow it at the other end, too: {enumerated(closing)}"
            yield Finding(codes.ONE_SIDE, message, peer.span, help_, (str(policy.ref), *closing[:3]))


def _is_about(peer: Peer, direction: Direction, *, all_refuse: bool) -> bool:
    """Return whether a peer names the pods that refuse it.

    A peer that selects whole namespaces leaves the decision to each pod: it counts only if all of them refuse. A peer
    that selects all namespaces, for example for DNS, includes pods that are in no manifest.
    """
    namespaces, labels = selectors_of(peer, direction) or (Selector.of(), Selector.of())
    return labels != Selector.of() or (all_refuse and namespaces != Selector.of())


# Pods


def check_host_network(context: Context) -> Iterator[Finding]:
    """Report policies that would select pods in the network of their node."""
    for policy, selected in SelectedPods(context).by_policy.items():
        on_host = [pod.key for pod in selected if pod.host_network]
        if on_host:
            message = f"{policy.ref} does not apply to {enumerated(on_host)}, in the network of the node"
            help_ = "remove hostNetwork, or guard the node"
            yield Finding(codes.HOST_NETWORK, message, policy.subject_span, help_, (str(policy.ref), *on_host[:3]))


def check_tunnel(context: Context) -> Iterator[Finding]:
    """Report policies that stop the tunnel of an ambient mesh at its pods."""
    pods = SelectedPods(context)
    for pod_class in pods.classes:
        ambient = [pod.key for pod in pod_class.members if _is_ambient(pod, pods)]
        for direction, layer in pod_class.layers.items() if ambient else ():
            yield from _tunnel(context, pod_class, ambient, direction, layer)


def _tunnel(
    context: Context, pod_class: PodClass, ambient: list[str], direction: Direction, layer: Layer
) -> Iterator[Finding]:
    tunnel = Request({PORT: _TUNNEL_PORT, TRANSPORT: "TCP", PORT_NAME: None, VICINITY: None})
    policies = [policy for policy in pod_class.policies if policy.rules.get(direction) and policy.isolates]
    if policies and _allows_something(layer) and not context.can_allow(layer, tunnel):
        message = f"no rule allows the tunnel of the mesh ({direction} of {enumerated(ambient)}, port {_TUNNEL_PORT})"
        help_ = f"add port {_TUNNEL_PORT}: between pods of the mesh, the network sees only this port"
        span = policies[0].rules[direction][0].rule.origin.span
        yield Finding(codes.TUNNEL_BLOCKED, message, span, help_, (str(policies[0].ref), *ambient[:3]))


def _is_ambient(pod: Workload, pods: SelectedPods) -> bool:
    labels: Mapping[str, str] = {**pods.world.namespace(pod.namespace).labels, **pod.labels}
    return labels.get(_DATAPLANE) == "ambient"
