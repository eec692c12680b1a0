"""Linkerd: probes that a proxy denies, pods without a proxy, annotations that a proxy ignores."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import HttpProbe, Workload
from eastgate.cluster.question import Question
from eastgate.dialects.base import Policy
from eastgate.dialects.linkerd import lint_codes as codes
from eastgate.dialects.linkerd.injected import probes_with
from eastgate.dialects.linkerd.lint_servers import inbound_layer, ports_of, servers_on
from eastgate.dialects.linkerd.model import AuthorizationPolicy
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.dialects.linkerd.stance import DEFAULT_POLICY
from eastgate.dialects.linting import Context, Finding, Group, enumerated, locating
from eastgate.dialects.linting.nearest import nearest_name
from eastgate.ir import Known, Request
from eastgate.ir.attributes import IDENTITY, MESH_NAME, METHOD, PATH, PORT, SENT_PATH, Attribute
from eastgate.ir.paths import comparable_path

_SKIP = "config.linkerd.io/skip-inbound-ports"
_INJECT = "linkerd.io/inject"


def check_probes(context: Context) -> Iterator[Finding]:
    """Report probes that no authorization allows, whatever address the kubelet calls from."""
    for group in context.workload_groups:
        layer = inbound_layer(group.layers)
        workload = context.workload(group.first)
        owned = {port for server in servers_on(group) for port in ports_of(server, workload, context.world)}
        if layer is None:
            continue
        for probe in probes_with(workload, owned, context.world):
            values: dict[Attribute, Known] = {IDENTITY: None, MESH_NAME: None, PORT: probe.port, METHOD: "GET"}
            values |= {PATH: comparable_path(probe.path), SENT_PATH: probe.path}
            if not context.can_allow(layer, Request(values)):
                yield _probe_finding(probe, group, context)


def _probe_finding(probe: HttpProbe, group: Group, context: Context) -> Finding:
    workload = context.workload(group.first)
    servers = servers_on(group)
    owner = next((server for server in servers if probe.port in ports_of(server, workload, context.world)), None)
    by = f" by {owner.ref}" if owner is not None else ""
    message = f"the probe GET {probe.path} on port {probe.port} of {group.text} is denied{by}"
    if not probe.rooted:
        help_ = f"write the path with its slash, {probe.path}: Linkerd lets no other probe in by itself"
    else:
        help_ = "authorize the addresses of the nodes on a route of its own for the probe (NetworkAuthentication)"
    span = locating.scalar(workload.span, None, [probe.path]) if workload.span is not None else None
    subjects = (*group.members, *((str(owner.ref),) if owner is not None else ()))
    question = Question.of("anonymous", group.destination, port=probe.port, method="GET", path=probe.path)
    return Finding(codes.PROBE_DENIED, message, span, help_, subjects, context.command(question))


def check_annotations(context: Context) -> Iterator[Finding]:
    """Report annotations whose default policy does not exist."""
    holders: list[tuple[str, str | None, Span | None]] = [
        (f"Namespace/{namespace.name}", namespace.annotations.get(DEFAULT_POLICY), namespace.span)
        for namespace in context.world.namespaces.values()
    ]
    workloads = context.world.workloads.values()
    holders += [(workload.key, workload.annotations.get(DEFAULT_POLICY), workload.span) for workload in workloads]
    for key, policy, span in holders:
        if policy is not None and policy not in set(InboundPolicy):
            close = nearest_name(policy, list(InboundPolicy))
            message = f"`{policy}` is no default policy: it is ignored"
            help_ = f"did you mean {close}?" if close else f"write one of {', '.join(InboundPolicy)}"
            yield Finding(codes.DEFAULT_POLICY, message, locating.annotation(span, DEFAULT_POLICY), help_, (key,))


def check_proxies(context: Context) -> Iterator[Finding]:
    """Report policies on pods that have no proxy, or whose proxy is bypassed on the port."""
    for group in context.workload_groups:
        for key in group.members:
            workload = context.workload(key)
            if _annotation(workload, _INJECT, context) == "disabled":
                policies = _policies(group)
                if policies:
                    yield _no_proxy_finding(workload, policies, context)
            elif _SKIP in workload.annotations or _SKIP in context.world.namespace(workload.namespace).annotations:
                yield from _bypass_findings(workload, group, context)


def _policies(group: Group) -> list[Policy]:
    """Return the Servers that select a workload, and the policies that target the workload itself."""
    policies = [attachment.policy for attachment in group.attached if not attachment.policy.audit]
    direct = [policy for policy in policies if isinstance(policy, AuthorizationPolicy) and policy.target.is_workload]
    return [*servers_on(group), *direct]


def _annotation(workload: Workload, name: str, context: Context) -> str | None:
    return workload.annotations.get(name, context.world.namespace(workload.namespace).annotations.get(name))


def _annotation_span(workload: Workload, name: str, context: Context) -> Span | None:
    holder = workload if name in workload.annotations else context.world.namespace(workload.namespace)
    return locating.annotation(holder.span, name)


def _no_proxy_finding(workload: Workload, policies: list[Policy], context: Context) -> Finding:
    names = enumerated([str(policy.ref) for policy in policies])
    message = f"{names} cannot be enforced on {workload.key}: it is not in the mesh"
    help_ = "remove linkerd.io/inject: disabled, or do not select it"
    subjects = (workload.key, *(str(policy.ref) for policy in policies))
    return Finding(codes.NOT_ENFORCED, message, _annotation_span(workload, _INJECT, context), help_, subjects)


def _bypass_findings(workload: Workload, group: Group, context: Context) -> Iterator[Finding]:
    ranges = _ranges(_annotation(workload, _SKIP, context) or "")
    for server in servers_on(group):
        owned = ports_of(server, workload, context.world)
        ports = sorted(port for port in owned if any(first <= port <= last for first, last in ranges))
        if ports:
            listed = ", ".join(str(port) for port in ports)
            message = f"{server.ref} is not enforced on port {listed} of {workload.key}: the proxy is bypassed there"
            help_ = f"take {listed} out of {_SKIP}"
            span = _annotation_span(workload, _SKIP, context)
            yield Finding(codes.NOT_ENFORCED, message, span, help_, (workload.key, str(server.ref)))


def _ranges(text: str) -> list[tuple[int, int]]:
    ranges = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            ranges.append((int(first), int(last or first)))
    return ranges
