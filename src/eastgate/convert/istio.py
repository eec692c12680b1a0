"""Converts GEP-3779 to Istio's AuthorizationPolicy, so that an Istio mesh can enforce it today.

In both APIs a DENY that matches denies, and then an ALLOW must match. There are two differences. In Istio a workload
with only DENY policies is open, so the conversion adds an ALLOW of nothing to each DENY. And Istio has one list of
ALLOW policies, where GEP-3779 has one for each level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eastgate.basics.records import dataclass
from eastgate.cluster import Selector, service_account_id
from eastgate.convert import codes
from eastgate.convert.gep_reading import (
    Account,
    Gep,
    GepRule,
    NamedCaller,
    PodsTarget,
    SpiffeIdentity,
    TargetedService,
    WholeNamespace,
)
from eastgate.convert.gep_writing import resolved
from eastgate.convert.istio_operations import beyond_pods, is_at_ztunnel
from eastgate.convert.istio_rules import istio_rules
from eastgate.convert.model import CONVERTED_FROM, Job, Manifest, metadata_of, origin_of
from eastgate.convert.selectors import label_sets, may_meet, write_selector
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings
from eastgate.dialects.gep3779.settings import ServiceTarget as ServiceReading
from eastgate.dialects.istio.model import DRY_RUN, Action, IstioAuthorizationPolicy
from eastgate.ir import AccountsOf
from eastgate.reading.manifests import Document, Plain
from eastgate.settings import MeshMode

# Joins two levels in one list: GEP-3779 needs an ALLOW of both levels, and Istio has one list of ALLOW policies.
#
# If the policies of both levels select exactly the same pods, each pair of their rules becomes one rule that requires
# both. If they may select some of the same pods, the APPLICATION policy is not converted.


_MAX_RULES = 512  # limit of Istio


@dataclass(frozen=True, slots=True, eq=False)
class TargetedPolicy:
    """A policy with targets that Istio supports: pods with any of these labels, or Services at their waypoint.

    `others` are documents of other policies that were joined with it.
    """

    gep: Gep
    pods: tuple[PodsTarget, ...] = ()
    services: tuple[TargetedService, ...] = ()
    others: tuple[Document, ...] = ()

    @property
    def selectors(self) -> frozenset[Selector]:
        return frozenset(target.selector for target in self.pods)

    def meets(self, other: TargetedPolicy) -> bool:
        """Return whether both may apply to one request."""
        by_pod = any(may_meet(mine.selector, theirs.selector) for mine in self.pods for theirs in other.pods)
        return by_pod or bool({mine.name for mine in self.services} & {theirs.name for theirs in other.services})


def closes(gep: Gep, job: Job) -> bool:
    """Return whether the policy closes its targets to requests that no ALLOW of its level matches."""
    return not gep.policy.audit and (not gep.denies or job.settings.section(GepSettings).deny_only is DenyOnly.DENY)


def one_level_each(targeted: Sequence[TargetedPolicy], job: Job) -> list[TargetedPolicy]:
    """Return the policies to write, so that no workload gets ALLOW policies of two levels."""
    chosen: list[TargetedPolicy] = []
    for namespace in dict.fromkeys(policy.gep.namespace for policy in targeted):
        of_namespace = [policy for policy in targeted if policy.gep.namespace == namespace]
        chosen += _with_one_level(of_namespace, job)
    return chosen


def _with_one_level(of_namespace: Sequence[TargetedPolicy], job: Job) -> Iterator[TargetedPolicy]:
    closing = [policy for policy in of_namespace if closes(policy.gep, job)]
    joined = [
        pods for pods in dict.fromkeys(policy.selectors for policy in closing) if pods and _can_join(pods, closing)
    ]
    for pods in joined:
        yield _joined([policy for policy in closing if policy.selectors == pods and not policy.gep.denies], job)
    network = [policy for policy in closing if not policy.gep.is_application]
    for policy in of_namespace:
        if policy in closing and policy.selectors in joined:
            if policy.gep.denies:
                yield policy
            continue
        rival = (
            next((n for n in network if n.meets(policy)), None)
            if policy.gep.is_application and policy in closing
            else None
        )
        if rival is None:
            yield policy
            continue
        gep = policy.gep
        message = f"{gep.policy.ref} may share pods with {rival.gep.policy.ref} of the other level: it is not converted"
        way_out = "write the same selector in both, or target different pods"
        job.keep(gep.document, codes.LEVELS, message, gep.span("enforcementLevel"), help=way_out)


def _can_join(pods: frozenset[Selector], closing: Sequence[TargetedPolicy]) -> bool:
    """Return whether both levels have an ALLOW on these pods, and no ALLOW selects only some of them."""
    allowing = [policy for policy in closing if not policy.gep.denies]
    same = [policy for policy in allowing if policy.selectors == pods and not policy.services]
    sample = same[0] if same else None
    if sample is None or {policy.gep.is_application for policy in same} != {True, False}:
        return False
    counts = [
        sum(len(policy.gep.rules) for policy in same if policy.gep.is_application is level) for level in (True, False)
    ]
    others = [policy for policy in allowing if policy not in same]
    return counts[0] * counts[1] <= _MAX_RULES and not any(policy.meets(sample) for policy in others)


def _joined(same: Sequence[TargetedPolicy], job: Job) -> TargetedPolicy:
    network = [rule for policy in same if not policy.gep.is_application for rule in policy.gep.rules]
    application = [rule for policy in same if policy.gep.is_application for rule in policy.gep.rules]
    first = next(policy for policy in same if policy.gep.is_application)
    rules = tuple(_both(mine, other, job) for mine in network for other in application)
    others = tuple(policy.gep.document for policy in same if policy is not first)
    return replace(first, gep=replace(first.gep, rules=rules), others=others)


# Rules


def _both(network: GepRule, application: GepRule, job: Job) -> GepRule:
    """Return the requests that both match. A list without common entries becomes empty, and then matches nothing."""
    ports = application.ports
    if network.ports is not None:
        ports = network.ports if ports is None else tuple(port for port in ports if port in network.ports)
    return replace(application, callers=_callers(network.callers, application.callers, job), ports=ports)


def _callers(
    ours: tuple[NamedCaller, ...] | None, theirs: tuple[NamedCaller, ...] | None, job: Job
) -> tuple[NamedCaller, ...] | None:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    common = (_caller(mine, other, job) for mine in ours for other in theirs)
    return tuple(dict.fromkeys(mine for mine in common if mine is not None))


def _caller(mine: NamedCaller, other: NamedCaller, job: Job) -> NamedCaller | None:
    if isinstance(other, WholeNamespace):
        mine, other = other, mine
    if isinstance(mine, WholeNamespace):
        if isinstance(other, WholeNamespace):
            return mine if mine.namespace == other.namespace else None
        return other if AccountsOf(job.settings.trust_domain, mine.namespace).contains(_id(other, job)) else None
    return mine if _id(mine, job) == _id(other, job) else None


def _id(caller: NamedCaller, job: Job) -> str:
    match caller:
        case SpiffeIdentity(spiffe):
            return spiffe
        case Account(namespace, name):
            return service_account_id(job.settings.trust_domain, namespace, name)
        case WholeNamespace(namespace):
            return AccountsOf(job.settings.trust_domain, namespace).path


GROUP, VERSION, KIND = "security.istio.io", "v1", "AuthorizationPolicy"
_WAYPOINT_HELP = "target the Service, with serviceTarget: traffic, so that its waypoint enforces it"


def write_istio(geps: Sequence[Gep], job: Job) -> None:
    """Write all policies of a cluster together, because policies on the same pods affect each other."""
    possible = (_with_targets(gep, job) for gep in geps)
    targeted = list(_at_waypoints([policy for policy in possible if policy is not None], job))
    chosen = one_level_each(targeted, job)
    for policy in chosen:
        _write(policy, chosen, job)


# Targets


def _with_targets(gep: Gep, job: Job) -> TargetedPolicy | None:
    if gep.namespace == job.istio_root_namespace:
        message = f"in Istio a policy in {gep.namespace} applies to the whole mesh: {gep.policy.ref} is not converted"
        job.keep(gep.document, codes.ROOT_NAMESPACE, message, gep.document.locate("metadata", "namespace"))
        return None
    services = tuple(target for target in gep.targets if isinstance(target, TargetedService))
    by_traffic = job.settings.section(GepSettings).service_target is ServiceReading.TRAFFIC
    if job.settings.mesh_mode is MeshMode.AMBIENT and services and (gep.is_application or by_traffic):
        return _with_services(gep, services, job) if _is_no_dry_run(gep, job) else None
    pods = [resolved(target, gep, job) for target in gep.targets]
    chosen = tuple(target for target in pods if target is not None)
    if len(chosen) < len(pods) or not all(_selectable(target, gep, job) for target in chosen):
        return None
    return TargetedPolicy(gep, chosen) if _is_enforced(gep, chosen, job) and _is_alone(gep, chosen, job) else None


def _is_no_dry_run(gep: Gep, job: Job) -> bool:
    if gep.policy.audit:
        message = f"ambient Istio may enforce policies in dry-run mode: {gep.policy.ref} is not converted"
        job.keep(gep.document, codes.AUDIT, message, gep.document.locate("metadata", "annotations"))
    return not gep.policy.audit


def _is_enforced(gep: Gep, pods: Sequence[PodsTarget], job: Job) -> bool:
    """Return whether the proxies of these pods see all that the policy reads.

    ztunnel sees no HTTP, and behind a waypoint a pod sees no caller.
    """
    for target in pods:
        why = beyond_pods(target.selector, gep.namespace, job)
        if why is not None:
            message = f"{why}: {gep.policy.ref} is not converted"
            job.keep(gep.document, codes.ATTACHMENT, message, target.span)
            return False
    by_labels = any(is_at_ztunnel(target.selector, gep.namespace, job) for target in pods)
    if job.settings.mesh_mode is not MeshMode.AMBIENT and not by_labels:
        return True
    if any(rule.is_http for rule in gep.rules):
        message = f"ztunnel sees no paths and methods: {gep.policy.ref} is not converted"
        job.keep(gep.document, codes.WAYPOINT, message, gep.span("targetRefs"), help=_WAYPOINT_HELP)
        return False
    return _is_no_dry_run(gep, job)


def _is_alone(gep: Gep, pods: Sequence[PodsTarget], job: Job) -> bool:
    """Return whether no policy of Istio allows requests to some of these pods.

    Both policies would have to allow, but in Istio's one list either is enough.
    """
    if not closes(gep, job):
        return True
    for item in job.items:
        other = item.policy
        if not isinstance(other, IstioAuthorizationPolicy) or other.action is not Action.ALLOW or other.audit:
            continue
        near = other.in_root or other.namespace == gep.namespace
        if near and (other.refs or any(may_meet(target.selector, other.selector) for target in pods)):
            message = f"{other.ref} of Istio may allow on the same pods: {gep.policy.ref} is not converted"
            job.keep(gep.document, codes.POLICIES_MEET, message, gep.span("targetRefs"))
            return False
    return True


def _selectable(target: PodsTarget, gep: Gep, job: Job) -> bool:
    if label_sets(target.selector) is not None:
        return True
    message = f"Istio selects pods by labels with values only: {gep.policy.ref} is not converted"
    way_out = "give the intended pods a label, and select that label"
    job.keep(gep.document, codes.SELECTOR, message, target.span, help=way_out)
    return False


def _with_services(gep: Gep, services: tuple[TargetedService, ...], job: Job) -> TargetedPolicy | None:
    if job.settings.section(GepSettings).service_target is ServiceReading.WORKLOADS or len(services) < len(gep.targets):
        why = "traffic to the pods themselves bypasses the waypoint"
        message = f"{why}: {gep.policy.ref} is not converted"
        way_out = "set serviceTarget: traffic if the policy is only for traffic to the Service"
        job.keep(gep.document, codes.WAYPOINT, message, services[0].span, help=way_out)
        return None
    for service in services:
        message = f"only a waypoint of Service {gep.namespace}/{service.name} enforces this"
        job.lose(codes.WAYPOINT, message, service.span, help="check that the Service has one: istioctl waypoint status")
    return TargetedPolicy(gep, services=services)


def _at_waypoints(targeted: Sequence[TargetedPolicy], job: Job) -> Iterator[TargetedPolicy]:
    """Yield the policies that can be enforced together.

    Behind a waypoint, policies on pods see the waypoint as the client.
    """
    with_pods = {policy.gep.namespace for policy in targeted if policy.pods}
    for policy in targeted:
        if policy.services and policy.gep.namespace in with_pods:
            why = f"other policies of {policy.gep.namespace} target pods, which see the waypoint as the client"
            message = f"{why}: {policy.gep.policy.ref} is not converted"
            job.keep(policy.gep.document, codes.WAYPOINT, message, policy.services[0].span)
        else:
            yield policy


# Manifests


def _write(policy: TargetedPolicy, among: Sequence[TargetedPolicy], job: Job) -> None:
    gep = policy.gep
    rules = istio_rules(gep, job)
    targets = _targets(policy)
    for number, target in enumerate(targets, 1):
        name = gep.name if len(targets) == 1 else f"{gep.name}-{number}"
        if rules or not gep.denies:
            _policy(policy, job, name, target, str(gep.policy.action), rules)
        if gep.denies and closes(gep, job) and (job.options.stands_alone or not _is_closed(policy, among)):
            _policy(policy, job, f"{name}-allow-nothing", target, "ALLOW", [])


def _is_closed(denying: TargetedPolicy, among: Sequence[TargetedPolicy]) -> bool:
    return any(_closes_as_much(denying, other) for other in among)


def _closes_as_much(denying: TargetedPolicy, other: TargetedPolicy) -> bool:
    """Return whether another ALLOW in the result already closes everything that the DENY must close."""
    gep = other.gep
    if (
        gep.denies
        or gep.policy.audit
        or (gep.namespace, gep.is_application)
        != (
            denying.gep.namespace,
            denying.gep.is_application,
        )
    ):
        return False
    theirs = [write_selector(target.selector) for target in other.pods]
    by_pod = {} in theirs or all(write_selector(target.selector) in theirs for target in denying.pods)
    names = {target.name for target in other.services}
    return by_pod and all(target.name in names for target in denying.services)


def _targets(policy: TargetedPolicy) -> list[Manifest]:
    """Return the targets of each policy of Istio. An empty target is all pods of the namespace."""
    targets: list[Manifest] = []
    if policy.services:
        refs: list[Plain] = [{"group": "", "kind": "Service", "name": target.name} for target in policy.services]
        targets.append({"targetRefs": refs})
    for target in policy.pods:
        for labels in label_sets(target.selector) or ():
            chosen: Manifest = {"selector": {"matchLabels": dict[str, Plain](labels)}} if labels else {}
            if chosen not in targets:
                targets.append(chosen)
    return targets


def _policy(policy: TargetedPolicy, job: Job, name: str, target: Manifest, action: str, rules: Sequence[Plain]) -> None:
    gep = policy.gep
    chosen = job.name(f"{KIND}.{GROUP}", gep.namespace, name)
    noted = {DRY_RUN: "true"} if gep.policy.audit else {}
    if policy.others:
        noted[CONVERTED_FROM] = ", ".join(origin_of(document) for document in (gep.document, *policy.others))
    manifest: Manifest = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": metadata_of(gep.document, chosen, annotations=noted),
        "spec": {**target, "action": action, "rules": list(rules)},
    }
    job.write(gep.document, manifest, policy.others)
