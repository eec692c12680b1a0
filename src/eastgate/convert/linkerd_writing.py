"""Converts GEP-3779 to Linkerd's inbound policy: a Server for each port, and the authorizations on it.

Linkerd only allows, for one port at a time, and a default policy decides about ports without a Server. So an ALLOW can
be converted if that default denies and the ports are known. A DENY cannot be converted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import product

from eastgate.basics.records import dataclass
from eastgate.cluster import PodsMatching, Selector, Workload, account_of
from eastgate.convert import codes
from eastgate.convert.gep_reading import (
    Account,
    Gep,
    GepRule,
    NamedCaller,
    PodsTarget,
    SpiffeIdentity,
    WholeNamespace,
)
from eastgate.convert.gep_writing import resolved
from eastgate.convert.model import Job, Manifest, metadata_of
from eastgate.convert.selectors import may_meet, write_selector
from eastgate.dialects import linkerd
from eastgate.dialects.base import Scene
from eastgate.dialects.linkerd import GROUP
from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.dialects.linkerd.stance import probes_with, stance_of
from eastgate.reading.manifests import Document, Plain

# Converts the rules of a GEP-3779 policy to Linkerd's authorizations: on Servers, or on routes for HTTP.


_MAX_MATCHES = 8


def _manifest(
    gep: Gep, job: Job, kind: str, version: str, name: str, spec: Manifest, others: Sequence[Document] = ()
) -> str:
    chosen = job.name(f"{kind}.{GROUP}", gep.namespace, name.replace(".", "-") if kind == "Server" else name)
    manifest: Manifest = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": metadata_of(gep.document, chosen, gep.written_namespace),
        "spec": spec,
    }
    job.write(gep.document, manifest, others)
    return chosen


def server_of(gep: Gep, selector: Selector, port: int, job: Job, others: Sequence[Document] = ()) -> str:
    """Return a Server that allows only authorized requests. `others` are other policies that share the Server."""
    spec: Manifest = {"podSelector": write_selector(selector), "port": port, "accessPolicy": "deny"}
    return _manifest(gep, job, "Server", "v1beta3", f"{gep.name}-{port}", spec, others)


def authorize(gep: Gep, number: int, rule: GepRule, servers: Sequence[str], job: Job) -> None:
    """Authorize the callers of a rule on the Servers, or on a route of them."""
    name = f"{gep.name}-rule-{number}"
    refs: list[Plain] = []
    if rule.callers is not None:
        identities: list[Plain] = list(dict.fromkeys(_identity(caller, job) for caller in rule.callers))
        chosen = _manifest(gep, job, "MeshTLSAuthentication", "v1alpha1", name, {"identities": identities})
        refs.append({"group": GROUP, "kind": "MeshTLSAuthentication", "name": chosen})
    targets = [("Server", server) for server in servers]
    if rule.paths_span is not None:
        message = "Linkerd compares paths as they are sent: dot segments, double and encoded slashes stay in them"
        job.lose(codes.PATHS, message, rule.paths_span, help="let only a gateway that normalizes paths call this")
    if rule.is_http:
        targets = [("HTTPRoute", _route(gep, name, list(_matches(rule)), servers, job))]
    for kind, target in targets:
        spec: Manifest = {
            "targetRef": {"group": GROUP, "kind": kind, "name": target},
            "requiredAuthenticationRefs": refs,
        }
        own = name if len(targets) == 1 else f"{name}-{target}"
        _manifest(gep, job, "AuthorizationPolicy", "v1alpha1", own, spec)


def catch_all(gep: Gep, servers: Sequence[str], job: Job, others: Sequence[Document] = ()) -> None:
    """Return a route for all other requests. Without it, a Server with routes answers them with 404."""
    _route(gep, f"{gep.name}-rest", [{"path": {"type": "PathPrefix", "value": "/"}}], servers, job, others)


def _identity(caller: NamedCaller, job: Job) -> str:
    """Return Linkerd's name of a caller. A SPIFFE ID of another trust domain stays as it is."""
    match caller:
        case Account(namespace, name):
            return job.settings.mesh_name(namespace, name)
        case WholeNamespace(namespace):
            return job.settings.mesh_name(namespace, "*")
        case SpiffeIdentity(spiffe):
            account = account_of(spiffe)
            own = account is not None and account[0] == job.settings.trust_domain
            return job.settings.mesh_name(*account[1:]) if account is not None and own else spiffe


# Routes


def _route(
    gep: Gep,
    name: str,
    matches: Sequence[Manifest],
    servers: Sequence[str],
    job: Job,
    others: Sequence[Document] = (),
) -> str:
    parents: list[Plain] = [{"group": GROUP, "kind": "Server", "name": server} for server in servers]
    chunks = [list(matches[start : start + _MAX_MATCHES]) for start in range(0, len(matches), _MAX_MATCHES)]
    rules: list[Plain] = [{"matches": list[Plain](chunk)} for chunk in chunks]
    return _manifest(gep, job, "HTTPRoute", "v1beta3", name, {"parentRefs": parents, "rules": rules}, others)


def _matches(rule: GepRule) -> Iterator[Manifest]:
    """Build matches of ANY path with ANY method."""
    for path, method in product(rule.paths or (None,), rule.methods or (None,)):
        match: Manifest = {"path": _path(path) if path is not None else {"type": "PathPrefix", "value": "/"}}
        if method is not None:
            match["method"] = method
        yield match


def _path(path: str) -> Manifest:
    """Build a path match.

    Linkerd's prefixes match whole segments, and a prefix of GEP-3779 matches any text, so it becomes a regular
    expression.
    """
    if path in ("*", "/*"):
        return {"type": "PathPrefix", "value": "/"}
    if path.endswith("*"):
        return {"type": "RegularExpression", "value": f"{_escaped(path[:-1])}.*"}
    if path.startswith("*/"):
        # The longest first: Linkerd's proxy takes the first alternative that matches, and it must match the whole path.
        return {"type": "RegularExpression", "value": f"/.*{_escaped(path[1:])}|{_escaped(path[1:])}"}
    if path.startswith("*"):
        return {"type": "RegularExpression", "value": f"/.*{_escaped(path[1:])}"}
    return {"type": "Exact", "value": path}


def _escaped(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)


@dataclass(slots=True)
class _Group:
    """Policies on the same pods. They share their Servers, because in Linkerd only one Server can have a port."""

    namespace: str
    selector: Selector
    is_application: bool
    geps: list[Gep] = field(default_factory=list)


def write_linkerd(geps: Sequence[Gep], job: Job) -> None:
    """Write all policies of a cluster. Policies on the same pods are written together."""
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
    """Return the default policy for a port without a Server."""
    stance = stance_of(workload, (), Scene(job.settings, job.world))
    return stance.default.policy if stance is not None else InboundPolicy.ALL_UNAUTHENTICATED


def _deny_by_default(job: Job) -> str:
    """Return how to make ports without a Server deny.

    If the setting has a value already, the annotation is the only way.
    """
    annotation = "write the annotation config.linkerd.io/default-inbound-policy: deny on the namespace"
    if job.settings.section(LinkerdSettings).linkerd_default_policy is InboundPolicy.DENY:
        return f"{annotation}, and none on the pods"
    return f"{annotation}, or if Linkerd denies by default, add --set linkerdDefaultPolicy=deny"


def _is_sound(gep: Gep, targets: Sequence[PodsTarget], job: Job) -> bool:
    """Return whether Linkerd allows no request that no Server allows."""
    for target in targets:
        workloads = selected(gep.namespace, target.selector, job)
        unknown = Workload(f"{gep.namespace}/-", gep.namespace, "-")  # a pod that no manifest declares may exist
        for workload in (unknown, *workloads):
            default = default_of(workload, job)
            if default is not InboundPolicy.DENY:
                message = f"ports without a Server would be {default} here: {gep.policy.ref} is not converted"
                job.keep(gep.document, codes.DEFAULT_OPEN, message, target.span, help=_deny_by_default(job))
                return False
            ports = frozenset(port for rule in gep.rules for port in rule.ports or ())
            probes = probes_with(workload, ports, job.world)
            if any(probe.rooted for probe in probes) and job.settings.section(LinkerdSettings).linkerd_probe_networks:
                why = f"Linkerd allows every caller on the probes of {workload.key}"
                message = f"{why}: {gep.policy.ref} is not converted"
                way_out = "if probeNetworks is empty in your Linkerd, add --set linkerdProbeNetworks="
                job.keep(gep.document, codes.PROBES, message, target.span, help=way_out)
                return False
    return True


def _join(gep: Gep, targets: Sequence[PodsTarget], groups: list[_Group], job: Job) -> None:
    """Add a policy to the groups of its pods.

    Keep the policy if it shares only some of the pods, or has another level.
    """
    selectors = list(dict.fromkeys(target.selector for target in targets))
    others = [group for group in groups if group.namespace == gep.namespace]
    for number, selector in enumerate(selectors):
        for group in others:
            if not may_meet(selector, group.selector):
                continue
            if group.is_application is not gep.is_application:
                why = "it may share pods with a policy of the other level, and both must allow"
                message = f"{why}: {gep.policy.ref} is not converted"
                job.keep(gep.document, codes.LEVELS, message, gep.span("targetRefs"))
                return
            if selector != group.selector:
                _keep_for_shared_port(gep, job)
                return
        if any(may_meet(selector, other) for other in selectors[:number]):
            _keep_for_shared_port(gep, job)
            return
    for selector in selectors:
        same = next((group for group in others if group.selector == selector), None)
        if same is None:
            groups.append(same := _Group(gep.namespace, selector, gep.is_application))
        same.geps.append(gep)


def _keep_for_shared_port(gep: Gep, job: Job) -> None:
    why = "some of these pods may have another policy too, and a port can have only one Server"
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
            listed = ", ".join(str(port) for port in ports) or "no port is known"
            message = f"any port became the declared ports: {listed}"
            job.lose(codes.PORTS_UNKNOWN, message, rule.span, help="name the ports, or declare them in the pods")
        chosen = [servers[port] for port in (ports if rule.ports is None else sorted(rule.ports))]
        if chosen:
            authorize(gep, number, rule, chosen, job)
    routed = [rule for _, _, rule in rules if rule.is_http]
    for rule in routed[1:]:
        message = "if another route is a closer match, only its callers are allowed"
        job.lose(codes.ROUTES, message, rule.paths_span or rule.span)
    if routed and len(routed) < len(rules):
        catch_all(first, list(servers.values()), job, others)
