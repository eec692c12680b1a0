"""Converts GEP-3779 to Linkerd's inbound policy: a Server for each port, and who is authorized on it.

Linkerd only allows, one port at a time, and leaves ports without a Server to a default. So an ALLOW can be said where
that default is deny and the ports are known; a DENY cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.cluster import PodsMatching, Selector, Workload
from eastgate.convert import codes
from eastgate.convert.gep_reading import Gep, PodsTarget, read
from eastgate.convert.gep_writing import resolved
from eastgate.convert.istio import refuse_tier
from eastgate.convert.linkerd_rules import authorize, catch_all, server_of
from eastgate.convert.model import Item, Job
from eastgate.convert.selectors import may_meet
from eastgate.dialects import linkerd
from eastgate.dialects.base import Scene
from eastgate.dialects.linkerd.injected import probes_with
from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.dialects.linkerd.stance import stance_of


@dataclass(slots=True)
class _Group:
    """Policies on the same pods, which share their Servers: in Linkerd only one Server has a port."""

    namespace: str
    selector: Selector
    is_application: bool
    geps: list[Gep] = field(default_factory=list)


def to_linkerd(items: Sequence[Item], job: Job) -> None:
    """Convert all policies of a cluster."""
    geps: list[Gep] = []
    for item in items:
        gep = read(item)
        if gep is None:
            refuse_tier(item, job)
        else:
            geps.append(gep)
    write_linkerd(geps, job)


def write_linkerd(geps: Sequence[Gep], job: Job) -> None:
    """Write all policies of a cluster: those on the same pods are written together."""
    groups: list[_Group] = []
    for gep in geps:
        targets = _targets(gep, job)
        if targets is not None and _is_sound(gep, targets, job):
            _join(gep, targets, groups, job)
    for group in groups:
        _write(group, job)


def _targets(gep: Gep, job: Job) -> list[PodsTarget] | None:
    if gep.denies:
        message = f"Linkerd has no DENY: {gep.policy.ref} is not converted"
        job.keep(gep.document, codes.DENY, message, gep.span("action"))
        return None
    if gep.policy.audit:
        message = f"Linkerd has no policy that only observes: {gep.policy.ref} is not converted"
        job.keep(gep.document, codes.AUDIT, message, gep.document.locate("metadata", "annotations"))
        return None
    if any(
        isinstance(item.policy, linkerd.Policy) and item.policy.ref.namespace == gep.namespace for item in job.items
    ):
        message = f"namespace {gep.namespace} has policies of Linkerd already: {gep.policy.ref} is not converted"
        job.keep(gep.document, codes.SERVERS_MEET, message, gep.document.locate("metadata"))
        return None
    possible = [resolved(target, gep, job) for target in gep.targets]
    targets = [target for target in possible if target is not None]
    return targets if len(targets) == len(possible) else None


def selected(namespace: str, selector: Selector, job: Job) -> list[Workload]:
    """Return the declared workloads that a selector selects."""
    keys = job.world.select(PodsMatching(namespace, selector))
    return [job.world.workloads[key] for key in sorted(keys)]


def default_of(workload: Workload, job: Job) -> InboundPolicy:
    """Return what a port without a Server lets in."""
    stance = stance_of(workload, (), Scene(job.settings, job.world))
    return stance.default.policy if stance is not None else InboundPolicy.ALL_UNAUTHENTICATED


def _deny_by_default(job: Job) -> str:
    """Return how to make a port without a Server deny; the setting is no way out where it is given."""
    annotation = "write the annotation config.linkerd.io/default-inbound-policy: deny on the namespace"
    if job.settings.section(LinkerdSettings).linkerd_default_policy is InboundPolicy.DENY:
        return f"{annotation}, and none on the pods"
    return f"{annotation}, or if Linkerd denies by default, say so: --set linkerdDefaultPolicy=deny"


def _is_sound(gep: Gep, targets: Sequence[PodsTarget], job: Job) -> bool:
    """Return whether nothing gets in that no Server says."""
    for target in targets:
        workloads = selected(gep.namespace, target.selector, job)
        unknown = Workload(f"{gep.namespace}/-", gep.namespace, "-")  # one that is not declared, but may exist
        for workload in (unknown, *workloads):
            default = default_of(workload, job)
            if default is not InboundPolicy.DENY:
                message = f"ports that no Server has would be {default} here: {gep.policy.ref} is not converted"
                job.keep(gep.document, codes.DEFAULT_OPEN, message, target.span, help=_deny_by_default(job))
                return False
            ports = frozenset(port for rule in gep.rules for port in rule.ports or ())
            probes = probes_with(workload, ports, job.world)
            if any(probe.rooted for probe in probes) and job.settings.section(LinkerdSettings).linkerd_probe_networks:
                why = f"Linkerd lets everybody in on the probes of {workload.key}"
                message = f"{why}: {gep.policy.ref} is not converted"
                way_out = "if probeNetworks is empty in your Linkerd, say so: --set linkerdProbeNetworks="
                job.keep(gep.document, codes.PROBES, message, target.span, help=way_out)
                return False
    return True


def _join(gep: Gep, targets: Sequence[PodsTarget], groups: list[_Group], job: Job) -> None:
    """Add a policy to the groups of its pods; not where only some of the pods are the same, or the level is another."""
    selectors = list(dict.fromkeys(target.selector for target in targets))
    others = [group for group in groups if group.namespace == gep.namespace]
    for number, selector in enumerate(selectors):
        for group in others:
            if not may_meet(selector, group.selector):
                continue
            if group.is_application is not gep.is_application:
                why = "it may meet a policy of the other level, and both must allow"
                message = f"{why}: {gep.policy.ref} is not converted"
                job.keep(gep.document, codes.LEVELS, message, gep.span("targetRefs"))
                return
            if selector != group.selector:
                _meets(gep, job)
                return
        if any(may_meet(selector, other) for other in selectors[:number]):
            _meets(gep, job)
            return
    for selector in selectors:
        same = next((group for group in others if group.selector == selector), None)
        if same is None:
            groups.append(same := _Group(gep.namespace, selector, gep.is_application))
        same.geps.append(gep)


def _meets(gep: Gep, job: Job) -> None:
    why = "some of these pods may have another policy too, and only one Server has a port"
    message = f"{why}: {gep.policy.ref} is not converted"
    job.keep(gep.document, codes.SERVERS_MEET, message, gep.span("targetRefs"), help="write the same selector in all")


def _write(group: _Group, job: Job) -> None:
    workloads = selected(group.namespace, group.selector, job)
    declared = {port.number for workload in workloads for port in workload.ports if port.protocol == "TCP"}
    rules = [(gep, number, rule) for gep in group.geps for number, rule in enumerate(gep.rules) if not rule.never]
    policy_ports = {port for _, _, rule in rules for port in rule.ports or ()}
    ports = sorted(declared | policy_ports)
    first = group.geps[0]
    others = tuple(gep.document for gep in group.geps[1:])
    servers = {port: server_of(first, group.selector, port, job, others) for port in ports}
    for gep, number, rule in rules:
        if rule.ports is None:
            listed = ", ".join(str(port) for port in ports) or "none is known"
            message = f"any port became those that are declared: {listed}"
            job.lose(codes.PORTS_UNKNOWN, message, rule.span, help="name the ports, or declare them in the pods")
        chosen = [servers[port] for port in (ports if rule.ports is None else sorted(rule.ports))]
        if chosen:
            authorize(gep, number, rule, chosen, job)
    routed = [rule for _, _, rule in rules if rule.is_http]
    for rule in routed[1:]:
        message = "where another route is a closer match, only its callers get in"
        job.lose(codes.ROUTES, message, rule.paths_span or rule.span)
    if routed and len(routed) < len(rules):
        catch_all(first, list(servers.values()), job, others)
