"""Checks of rules that read HTTP on ports without HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import Workload, World
from eastgate.cluster.objects import ServicePort
from eastgate.dialects.istio import lint_codes as codes
from eastgate.dialects.istio.lowering import View, lower_policy
from eastgate.dialects.istio.mesh_config import mesh_settings
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy
from eastgate.dialects.istio.planes import ServingPlane, is_gateway_pod, plane_of
from eastgate.dialects.istio.provenance import Surface
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.dialects.istio.written import IstioRule
from eastgate.dialects.linting import Context, Finding, enumerated
from eastgate.ir import ALWAYS, Is, OneOf, Rule, all_of, mentions
from eastgate.ir.attributes import PORT

_HTTP: Final = frozenset({"http", "http2", "http_proxy", "grpc"})
_BYTES: Final = frozenset({"tcp", "https", "tls", "mongo", "redis", "mysql"})
_OF_APPLICATION: Final = {"kubernetes.io/h2c": "http2", "kubernetes.io/ws": "http", "kubernetes.io/wss": "https"}
_NEVER_SNIFFED: Final = frozenset({25, 53, 3306, 27017})  # SMTP, DNS, MySQL, MongoDB


def protocols_of(workload: Workload, world: World) -> Mapping[int, str | None]:
    """Return the protocol of each TCP port of a workload, as Istio reads it from Services; None if Istio detects it.

    A port that no Service names has the protocol of its name in the container.
    """
    found: dict[int, set[str | None]] = {}
    for key in world.services_of(workload.key):
        service = world.services[key]
        for port in service.ports:
            if port.protocol == "TCP":
                for number in world.target_ports(service, port.port, workload, "TCP"):
                    found.setdefault(number, set()).add(_protocol(port))
    for declared in workload.ports:
        if declared.protocol == "TCP" and declared.number not in found:
            found[declared.number] = {_named(declared.name or "")}
    return {number: next(iter(names)) if len(names) == 1 else None for number, names in found.items()}


def _protocol(port: ServicePort) -> str | None:
    if port.app_protocol is not None:
        named = _OF_APPLICATION.get(port.app_protocol) or _named(port.app_protocol)
    else:
        named = _named(port.name or "")
    return named or ("tcp" if port.port in _NEVER_SNIFFED else None)


def _named(name: str) -> str | None:
    protocol = name.partition("-")[0].lower()
    return protocol if protocol in _HTTP | _BYTES else None


class _ServedWorkloads:
    """The workloads that policies select and sidecars serve, and the protocols of their ports."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.mesh = mesh_settings(context.settings, context.world)
        self.protocols = cache(lambda key: protocols_of(context.workload(key), context.world))
        self.has_sidecar = cache(self._has_sidecar)

    def _has_sidecar(self, key: str) -> bool:
        workload, data_plane = self.context.workload(key), self.context.settings.section(IstioSettings).istio_data_plane
        if is_gateway_pod(workload, self.context.world):
            return False
        return plane_of(workload, self.context.world, data_plane) not in (ServingPlane.ZTUNNEL, ServingPlane.NONE)

    def workloads(self, policy: IstioAuthorizationPolicy) -> list[str]:
        """Return the workloads that a policy selects by labels."""
        targets = policy.targets if not policy.refs else ()
        keys = sorted({key for target in targets for key in self.context.world.select(target)})
        return [key for key in keys if self.has_sidecar(key)]

    def lowered(self, policy: IstioAuthorizationPolicy, surface: Surface) -> tuple[Rule, ...]:
        """Return the rules of a policy on a surface: HTTP, or only bytes."""
        return lower_policy(policy, View(surface, self.mesh))

    def policies(self, action: Action) -> list[IstioAuthorizationPolicy]:
        """Return the policies in force with an action."""
        found = (policy for policy in self.context.policies if isinstance(policy, IstioAuthorizationPolicy))
        return [policy for policy in found if policy.action is action and not policy.audit]


# DENY


def check_denied_tcp(context: Context) -> Iterator[Finding]:
    """Report DENY rules that deny more on ports without HTTP, and name no port."""
    served = _ServedWorkloads(context)
    for policy in served.policies(Action.DENY):
        workloads = [key for key in served.workloads(policy) if _may_be_bytes(served.protocols(key))]
        if workloads:
            http, octets = (served.lowered(policy, surface) for surface in (Surface.HTTP, Surface.BYTES))
            for rule, left in zip(http, octets, strict=True):
                if left.when != rule.when and PORT not in mentions(left.when):
                    yield _closes_tcp(policy, left, workloads)


def _may_be_bytes(protocols: Mapping[int, str | None]) -> bool:
    """Return whether a workload has ports that may have another protocol than HTTP."""
    return not protocols or any(protocol not in _HTTP for protocol in protocols.values())


def _closes_tcp(policy: IstioAuthorizationPolicy, left: Rule, workloads: list[str]) -> Finding:
    denied = "every connection" if left.when == ALWAYS else "connections to all ports"
    message = f"rule {left.origin.index} of {policy.ref} denies {denied} of {enumerated(workloads)} also without HTTP"
    help_ = "add the ports that speak HTTP to the operation: ports: [..]"
    return Finding(codes.CLOSES_TCP, message, left.origin.span, help_, (str(policy.ref), *workloads[:3]))


# ALLOW


def check_allowed_tcp(context: Context) -> Iterator[Finding]:
    """Report ALLOW rules on HTTP that leave TCP ports closed, or that apply only to TCP ports."""
    served = _ServedWorkloads(context)
    policies = served.policies(Action.ALLOW)
    selecting: dict[str, list[IstioAuthorizationPolicy]] = {}
    for policy in policies:
        for key in served.workloads(policy):
            selecting.setdefault(key, []).append(policy)
    for policy in policies:
        kept = {rule.origin.index for rule in served.lowered(policy, Surface.BYTES)}
        dropped = [rule for rule in policy.rules if rule.index not in kept]
        for rule in dropped:
            yield from _on_tcp(policy, rule, served, selecting)


def _on_tcp(
    policy: IstioAuthorizationPolicy,
    rule: IstioRule,
    served: _ServedWorkloads,
    selecting: Mapping[str, Sequence[IstioAuthorizationPolicy]],
) -> Iterator[Finding]:
    meant = {key: _meant(rule, served.protocols(key)) for key in served.workloads(policy)}
    tcp = {key: [port for port, protocol in ports.items() if protocol in _BYTES] for key, ports in meant.items()}
    speaks_http = any(len(tcp[key]) < len(ports) or not ports for key, ports in meant.items())
    closed = {
        key: [port for port in ports if not speaks_http or _is_closed(port, selecting[key], served)]
        for key, ports in tcp.items()
    }
    places = [f"port {port} of {key}" for key, ports in sorted(closed.items()) for port in sorted(ports)]
    if places:
        keys = [key for key, ports in sorted(closed.items()) if ports]
        message = f"rule {rule.index} of {policy.ref} allows nothing on {enumerated(places)}, which does not speak HTTP"
        help_ = "add a rule for it without methods, paths, hosts and tokens, or name the Service's port http-.."
        yield Finding(codes.HTTP_ON_TCP, message, _http_span(rule), help_, (str(policy.ref), *keys[:3]))


def _http_span(rule: IstioRule) -> Span | None:
    """Return the first list of a rule that needs HTTP."""
    entries = (*(rule.operations or ()), *(rule.sources or ()))
    lists = (entry[name].span for entry in entries for name in ("methods", "paths", "hosts") if name in entry)
    return next(lists, rule.span)


def _meant(rule: IstioRule, protocols: Mapping[int, str | None]) -> dict[int, str | None]:
    """Return the ports of a workload that a rule applies to."""
    lists = [entry["ports"].values if "ports" in entry else () for entry in rule.operations or ()]
    if not lists or not all(lists):
        return dict(protocols)
    named = {value.text for values in lists for value in values}
    return {port: protocol for port, protocol in protocols.items() if str(port) in named}


def _is_closed(port: int, policies: Sequence[IstioAuthorizationPolicy], served: _ServedWorkloads) -> bool:
    """Return whether no rule of ALLOW policies can allow a connection to a TCP port."""
    on_port = Is(PORT, OneOf(frozenset({port})))
    rules = (rule for policy in policies for rule in served.lowered(policy, Surface.BYTES))
    return not any(served.context.is_possible(all_of((rule.when, on_port))) for rule in rules)
