"""Linkerd: what its proxies make of it. Probes that they refuse, pods that have none, annotations that they ignore."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.linkerd.injected import probes_with
from eastgate.dialects.linkerd.model import AuthorizationPolicy
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.lint import codes, locating
from eastgate.lint.ground import Ground, Group, Policy, enumerated
from eastgate.lint.linkerd import ports_of, servers_on
from eastgate.lint.model import Finding, command
from eastgate.lint.nearest import near
from eastgate.lint.possible import can_allow
from eastgate.places import Span
from eastgate.policy import Known, Request
from eastgate.policy.attributes import IDENTITY, MESH_NAME, METHOD, PATH, PORT, SENT_PATH, Attribute
from eastgate.policy.paths import comparable_path
from eastgate.questions import Question
from eastgate.world import HttpProbe, Workload

__all__ = ["denied_probes", "invalid_annotations", "without_proxy"]

_DEFAULT_POLICY = "config.linkerd.io/default-inbound-policy"
_SKIP = "config.linkerd.io/skip-inbound-ports"
_INJECT = "linkerd.io/inject"


def denied_probes(ground: Ground) -> Iterator[Finding]:
    """Probes that no authorization lets in, whatever address the kubelet calls from."""
    for group in ground.workload_groups:
        layer = next((one for one in group.program.layers if one.name == "workload/inbound"), None)
        workload = ground.workload(group.first)
        owned = {port for server in servers_on(group) for port in ports_of(server, workload, ground)}
        for probe in probes_with(workload, owned, ground.world) if layer is not None else ():
            values: dict[Attribute, Known] = {IDENTITY: None, MESH_NAME: None, PORT: probe.port, METHOD: "GET"}
            values |= {PATH: comparable_path(probe.path), SENT_PATH: probe.path}
            if layer is not None and not can_allow(layer, Request(values)):
                yield _denied(probe, group, ground)


def _denied(probe: HttpProbe, group: Group, ground: Ground) -> Finding:
    workload = ground.workload(group.first)
    owner = next((server for server in servers_on(group) if probe.port in ports_of(server, workload, ground)), None)
    by = f" by {owner.ref}" if owner is not None else ""
    message = f"the probe GET {probe.path} on port {probe.port} of {group.named} is denied{by}"
    if not probe.rooted:
        help_ = f"write the path with its slash, {probe.path}: Linkerd lets no other probe in by itself"
    else:
        help_ = "authorize the addresses of the nodes on a route of its own for the probe (NetworkAuthentication)"
    span = locating.scalar(workload.span, None, [probe.path]) if workload.span is not None else None
    subjects = (*group.members, *((str(owner.ref),) if owner is not None else ()))
    question = Question("anonymous", group.destination, probe.port, "GET", probe.path)
    return Finding(codes.PROBE_DENIED, message, span, help_, subjects, command(question))


def invalid_annotations(ground: Ground) -> Iterator[Finding]:
    """Default policies that are none."""
    holders: list[tuple[str, str | None, Span | None]] = [
        (f"Namespace/{one.name}", one.annotations.get(_DEFAULT_POLICY), one.span)
        for one in ground.world.namespaces.values()
    ]
    holders += [(one.key, one.annotations.get(_DEFAULT_POLICY), one.span) for one in ground.world.workloads.values()]
    for key, written, span in holders:
        if written is not None and written not in set(InboundPolicy):
            close = near(written, [str(one) for one in InboundPolicy])
            message = f"`{written}` is no default policy: it is ignored"
            help_ = f"did you mean {close}?" if close else f"write one of {', '.join(InboundPolicy)}"
            place = locating.annotation(span, _DEFAULT_POLICY)
            yield Finding(codes.DEFAULT_POLICY, message, place, help_, (key,))


def without_proxy(ground: Ground) -> Iterator[Finding]:
    """Policies on pods that have no proxy, or whose proxy is bypassed on the port."""
    for group in ground.workload_groups:
        for key in group.members:
            workload = ground.workload(key)
            if _annotation(workload, _INJECT, ground) == "disabled":
                policies = _policies(group)
                if policies:
                    yield _unenforced(workload, policies, ground)
            elif _SKIP in workload.annotations or _SKIP in ground.world.namespace(workload.namespace).annotations:
                yield from _skipped(workload, group, ground)


def _policies(group: Group) -> list[Policy]:
    """The Servers that select a workload, and the policies that target it as one."""
    workload_policies = [
        one.policy
        for one in group.attached
        if isinstance(one.policy, AuthorizationPolicy) and one.policy.target.is_workload and not one.policy.audit
    ]
    return [*servers_on(group), *workload_policies]


def _annotation(workload: Workload, name: str, ground: Ground) -> str | None:
    return workload.annotations.get(name, ground.world.namespace(workload.namespace).annotations.get(name))


def _holder(workload: Workload, name: str, ground: Ground) -> Span | None:
    holder = workload if name in workload.annotations else ground.world.namespace(workload.namespace)
    return locating.annotation(holder.span, name)


def _unenforced(workload: Workload, policies: list[Policy], ground: Ground) -> Finding:
    names = enumerated([str(policy.ref) for policy in policies])
    message = f"{names} cannot be enforced on {workload.key}: it is not in the mesh"
    help_ = "remove linkerd.io/inject: disabled, or do not select it"
    subjects = (workload.key, *(str(policy.ref) for policy in policies))
    return Finding(codes.NOT_ENFORCED, message, _holder(workload, _INJECT, ground), help_, subjects)


def _skipped(workload: Workload, group: Group, ground: Ground) -> Iterator[Finding]:
    written = _annotation(workload, _SKIP, ground) or ""
    skipped = _numbers(written)
    for server in servers_on(group):
        ports = sorted(port for port in ports_of(server, workload, ground) if any(a <= port <= b for a, b in skipped))
        if ports:
            listed = ", ".join(str(port) for port in ports)
            message = f"{server.ref} is not enforced on port {listed} of {workload.key}: the proxy is bypassed there"
            help_ = f"take {listed} out of {_SKIP}"
            span = _holder(workload, _SKIP, ground)
            yield Finding(codes.NOT_ENFORCED, message, span, help_, (workload.key, str(server.ref)))


def _numbers(written: str) -> list[tuple[int, int]]:
    found = []
    for part in (one.strip() for one in written.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.append((int(first), int(last or first)))
    return found
