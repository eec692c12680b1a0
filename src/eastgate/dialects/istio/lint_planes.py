"""Checks of policies that Istio's proxies enforce differently from their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from eastgate.cluster import Workload, World
from eastgate.dialects.istio import lint_codes as codes
from eastgate.dialects.istio.mesh_config import mesh_settings
from eastgate.dialects.istio.model import (
    Action,
    IstioAuthorizationPolicy,
    IstioPolicy,
    MtlsMode,
    PeerAuthentication,
    RequestAuthentication,
)
from eastgate.dialects.istio.peer_modes import ZtunnelDenial, peer_modes, ztunnel_denials, ztunnel_ties
from eastgate.dialects.istio.planes import ALLOW_PROXY_HELP, ServingPlane, plane_of, refusal_of
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.dialects.istio.targets import WAYPOINT_CLASS
from eastgate.dialects.istio.waypoints import Binding, bindings_of, is_bound, is_waypoint_pod
from eastgate.dialects.istio.ztunnel import lower_rule
from eastgate.dialects.linting import Context, Finding, enumerated, locating
from eastgate.ir import NEVER, And, Is, Not, OneOf, Predicate
from eastgate.ir.attributes import PORT


def _planes(context: Context) -> Mapping[str, ServingPlane]:
    data_plane = context.settings.section(IstioSettings).istio_data_plane
    return {key: plane_of(workload, context.world, data_plane) for key, workload in context.world.workloads.items()}


def _enforced(context: Context) -> Iterator[IstioPolicy]:
    for policy in context.policies:
        if isinstance(policy, IstioPolicy) and not policy.audit:
            yield policy


def _selected(policy: IstioPolicy, context: Context) -> list[Workload]:
    """Return the workloads that a policy selects by labels."""
    targets = policy.targets if not policy.refs else ()
    keys = sorted({key for target in targets for key in context.world.select(target)})
    return [context.workload(key) for key in keys]


# Rules at ztunnel


def check_rules_at_ztunnel(context: Context) -> Iterator[Finding]:
    """Report the rules that ztunnel enforces differently from their text, and actions that it does not have."""
    planes = _planes(context)
    for policy in _enforced(context):
        selected = _selected(policy, context)
        served = [workload.key for workload in selected if planes[workload.key] is ServingPlane.ZTUNNEL]
        if isinstance(policy, IstioAuthorizationPolicy) and served:
            yield from _rule_findings(policy, served)
        elif not isinstance(policy, RequestAuthentication) or not served:
            continue
        elif policy.selector.match_labels or (len(served) == len(selected) and not _has_gateway(policy, context)):
            message = f"{policy.ref} has no effect on {enumerated(served)}: ztunnel validates no tokens"
            span = locating.at(policy.span, "spec", "selector")
            yield Finding(codes.TOKENS_AT_ZTUNNEL, message, span, _USE_WAYPOINT, (str(policy.ref), *served))


def _has_gateway(policy: IstioPolicy, context: Context) -> bool:
    """Return whether a policy without a selector may be intended for the proxies of a Gateway."""
    gateways = context.world.gateways.values()
    return any(
        gateway.gateway_class != WAYPOINT_CLASS and (policy.in_root or gateway.namespace == policy.namespace)
        for gateway in gateways
    )


def _rule_findings(policy: IstioAuthorizationPolicy, served: Sequence[str]) -> Iterator[Finding]:
    points, subjects = enumerated(served), (str(policy.ref), *served)
    if policy.action not in (Action.ALLOW, Action.DENY):
        message = f"{policy.ref} is not enforced on {points}: ztunnel has no action {policy.action}"
        span = locating.at(policy.span, "spec", "action")
        yield Finding(codes.ACTION_AT_ZTUNNEL, message, span, _USE_WAYPOINT, subjects)
        return
    denies = policy.action is Action.DENY
    for rule in policy.rules:
        lowered = lower_rule(rule, policy.namespace, denies=denies)
        if not lowered.dropped:
            continue
        fields = ", ".join(lowered.dropped)
        if lowered.when != NEVER:
            code, effect = codes.WIDER_AT_ZTUNNEL, f"{'denies' if denies else 'allows'} more than its text says"
        elif denies:
            code, effect = codes.NOTHING_AT_ZTUNNEL, "denies nothing"
        else:
            code, effect = codes.LEFT_OUT_AT_ZTUNNEL, "allows nothing"
        message = f"rule {rule.index} of {policy.ref} {effect} on {points}: ztunnel does not read {fields}"
        yield Finding(code, message, rule.span, _USE_WAYPOINT, subjects)


_USE_WAYPOINT = "bind the Services to a waypoint, and target them with targetRefs"


# Workloads without proxies


def check_proxies(context: Context) -> Iterator[Finding]:
    """Report policies on workloads without a proxy, and selectors that match only waypoints."""
    planes = _planes(context)
    for policy in _enforced(context):
        selected = _selected(policy, context)
        bare = [workload for workload in selected if planes[workload.key] is ServingPlane.NONE and workload.is_pod]
        if bare and (policy.selector.match_labels or not policy.in_root):
            yield from _workloads_without_proxy(policy, bare, context.world)
        if selected and all(is_waypoint_pod(workload, context.world) for workload in selected):
            message = f"{policy.ref} selects only waypoints, which ignore it"
            help_ = "write targetRefs with the Gateway of the waypoint, or the Service"
            span = locating.at(policy.span, "spec", "selector")
            yield Finding(codes.ONLY_WAYPOINTS, message, span, help_, (str(policy.ref), *(w.key for w in selected)))


def check_unknown_proxies(context: Context) -> Iterator[Finding]:
    """Report, in one finding, policies on pods of declared namespaces if it is unknown whether these have a proxy."""
    planes = _planes(context)
    doubtful = {
        policy: [pod.key for pod in _selected(policy, context) if pod.namespace in context.world.namespaces]
        for policy in _enforced(context)
    }
    unknown = {
        policy: keys
        for policy, pods in doubtful.items()
        if (keys := [key for key in pods if planes[key] is ServingPlane.UNKNOWN])
    }
    if unknown:
        keys = sorted({key for pods in unknown.values() for key in pods})
        refs = sorted(str(policy.ref) for policy in unknown)
        verb = "has" if len(keys) == 1 else "have"
        message = f"no label says whether {enumerated(keys)} {verb} a proxy that enforces {enumerated(refs)}"
        help_ = "label the namespaces for Istio, or set istioDataPlane to sidecar, ambient or none"
        first = min(unknown, key=lambda policy: str(policy.ref))
        span = locating.at(first.span, "spec", "selector")
        yield Finding(codes.UNKNOWN_PROXY, message, span, help_, (*refs, *keys))


def _workloads_without_proxy(policy: IstioPolicy, pods: Sequence[Workload], world: World) -> Iterator[Finding]:
    span = locating.at(policy.span, "spec", "selector")
    on_host = [pod.key for pod in pods if pod.host_network]
    if on_host and policy.selector.match_labels:
        message = f"nothing enforces {policy.ref} on {enumerated(on_host)}: hostNetwork pods have no proxy"
        help_ = "remove hostNetwork, or do not select the pods"
        yield Finding(codes.NO_PROXY, message, span, help_, (str(policy.ref), *on_host), cause="hostNetwork")
    others: dict[str | None, list[Workload]] = {}
    for pod in (pod for pod in pods if not pod.host_network):
        others.setdefault(refusal_of(pod, world), []).append(pod)
    for refusal, alike in others.items():
        keys, single = [pod.key for pod in alike], len(alike) == 1
        why = f"no label gives {'it' if single else 'them'} a proxy"
        help_ = "label the namespace istio-injection: enabled, or istio.io/dataplane-mode: ambient"
        if refusal is not None:
            why = refusal_of(alike[0], world, "its" if single else "their") or why
            help_ = ALLOW_PROXY_HELP
        message = f"nothing enforces {policy.ref} on {enumerated(keys)}: {why}"
        yield Finding(codes.NO_PROXY, message, span, help_, (str(policy.ref), *keys), cause=refusal or "labels")


_EXCLUDED: Final = "traffic.sidecar.istio.io/excludeInboundPorts"
_INCLUDED: Final = "traffic.sidecar.istio.io/includeInboundPorts"


def check_ports_without_proxy(context: Context) -> Iterator[Finding]:
    """Report policies on pods with ports that bypass the sidecar."""
    planes = _planes(context)
    for policy in _enforced(context):
        pods = [pod for pod in _selected(policy, context) if planes[pod.key] is ServingPlane.SIDECAR]
        for name, some, none in ((_EXCLUDED, "port {}", ""), (_INCLUDED, "ports other than {}", "any port")):
            alike: dict[str, list[str]] = {}
            for pod in pods:
                alike.setdefault(pod.annotations.get(name, none and "*").strip(), []).append(pod.key)
            for ports, keys in alike.items():
                where = some.format(ports) if ports else none
                if where and ports != "*":
                    message = f"nothing enforces {policy.ref} on {where} of {enumerated(keys)}: no sidecar sees it"
                    help_ = f"remove {name}, or guard the port with a NetworkPolicy"
                    span = locating.at(policy.span, "spec", "selector")
                    yield Finding(codes.NO_PROXY, message, span, help_, (str(policy.ref), *keys), cause=name + ports)


# Targets

_UNBOUND = (
    "no waypoint is bound to it",
    "label the Service istio.io/use-waypoint: <the name of a waypoint that accepts it>",
)
_UNADDRESSED = (
    "it is headless, so clients call its pods",
    "target the Gateway of a waypoint for workloads (istio.io/waypoint-for: all)",
)


def check_targets(context: Context) -> Iterator[Finding]:
    """Report Services that are targets of policies and have no waypoint."""
    trust_domain = mesh_settings(context.settings, context.world).trust_domain
    for policy in _enforced(context):
        for index, ref in enumerate(policy.refs):
            key = f"{policy.namespace}/{ref.name}"
            if (ref.group, ref.kind) != ("", "Service") or key not in context.world.services:
                continue
            pods = [context.world.workloads[pod] for pod in context.world.pods_of(key)]
            if pods and not any(_has_waypoint(policy, pod, key, context, trust_domain) for pod in pods):
                why, help_ = _UNADDRESSED if context.world.services[key].is_headless else _UNBOUND
                message = f"no waypoint enforces {policy.ref} on Service {key}: {why}"
                span = locating.at(policy.span, "spec", "targetRefs", index, "name")
                yield Finding(codes.NOT_BOUND, message, span, help_, (str(policy.ref), f"Service/{key}"))


def _has_waypoint(policy: IstioPolicy, pod: Workload, service: str, context: Context, trust_domain: str) -> bool:
    if (
        plane_of(pod, context.world, context.settings.section(IstioSettings).istio_data_plane)
        is not ServingPlane.ZTUNNEL
    ):
        return False
    bindings: Sequence[Binding] = bindings_of(pod, context.world, trust_domain)
    return any(binding.service == service and not binding.only and is_bound(policy, binding) for binding in bindings)


# Modes of mTLS


def check_modes(context: Context) -> Iterator[Finding]:
    """Report selectors that Istio ignores, modes of ports that ztunnel lacks, and modes among which it may choose."""
    planes, root = _planes(context), context.settings.section(IstioSettings).root_namespace
    peers = [policy for policy in _enforced(context) if isinstance(policy, PeerAuthentication)]
    for policy in peers:
        if policy.in_root and policy.selects_labels:
            message = f"{policy.ref} has no effect: Istio ignores a selector in the root namespace"
            span = locating.at(policy.span, "spec", "selector")
            help_ = "put it into the namespace of the workloads, or remove the selector"
            yield Finding(codes.MODE_NOT_ENFORCED, message, span, help_, (str(policy.ref),))
    ties: dict[tuple[PeerAuthentication, ...], list[str]] = {}
    selected = {peer.ref: {workload.key for workload in _selected(peer, context)} for peer in peers}
    for key, plane in planes.items():
        attached = [peer for peer in peers if key in selected[peer.ref]]
        if plane is not ServingPlane.ZTUNNEL:
            continue
        of_workload = ztunnel_ties(attached, root)
        for tie in of_workload:
            ties.setdefault(tie, []).append(key)
        if not of_workload and any(peer.ports for peer in attached):
            yield from _port_findings(key, attached, root)
    yield from (_tie_finding(tie, keys) for tie, keys in ties.items())


def _tie_finding(tie: Sequence[PeerAuthentication], keys: Sequence[str]) -> Finding:
    refs = [str(policy.ref) for policy in tie]
    names, where = enumerated(refs), enumerated(keys)
    message = f"{names} differ and have one age: ztunnel may use any of them on {where}"
    help_ = "keep one of them, or select different workloads with each"
    return Finding(codes.MODES_OF_ONE_AGE, message, tie[0].mode_span, help_, (*refs, *keys))


def _port_findings(key: str, attached: Sequence[PeerAuthentication], root: str) -> Iterator[Finding]:
    modes, denials = peer_modes(attached, root), ztunnel_denials(attached, root)
    for port, mode in modes.ports:
        strict = mode.mode is MtlsMode.STRICT
        if mode.policy is not None and strict is not _is_closed(denials, port):
            does = "accepts plaintext" if strict else "refuses plaintext"
            message = f"port {port} of {key} {does} anyway: ztunnel does not support mode {mode.mode} for it"
            help_ = "write the mode of the workload, too" if strict else "write PERMISSIVE"
            yield Finding(codes.MODE_NOT_ENFORCED, message, mode.span, help_, (str(mode.policy.ref), key))


def _is_closed(denials: Sequence[ZtunnelDenial], port: int) -> bool:
    """Return whether one of the denials refuses plaintext on a port."""
    return any(_covers(denial.when, port) for denial in denials)


def _covers(when: Predicate, port: int) -> bool:
    for part in when.parts if isinstance(when, And) else ():
        if isinstance(part, Is) and part.attribute is PORT and isinstance(part.matcher, OneOf):
            return port in part.matcher.values
        if isinstance(part, Not) and isinstance(part.part, Is) and isinstance(part.part.matcher, OneOf):
            return port not in part.part.matcher.values
    return True
