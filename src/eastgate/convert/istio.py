"""GEP-3779 as Istio's AuthorizationPolicy, so that an Istio mesh can enforce it today.

What is alike: a DENY that matches denies, then an ALLOW must match. What is not: in Istio a workload with only DENY
policies is open, so that an ALLOW of nothing goes with each DENY; and Istio has one list of ALLOW policies where
GEP-3779 has one for each level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.convert import codes
from eastgate.convert.gep_reading import Gep, PodsTarget, ServiceTarget, read
from eastgate.convert.gep_writing import resolved
from eastgate.convert.istio_levels import Aimed, closes, one_level_each
from eastgate.convert.istio_rules import istio_rules
from eastgate.convert.model import CONVERTED_FROM, Item, Job, Manifest, metadata_of, origin_of
from eastgate.convert.selectors import label_sets, written
from eastgate.dialects.gep3779.settings import GepSettings
from eastgate.dialects.gep3779.settings import ServiceTarget as ServiceReading
from eastgate.settings import MeshMode
from eastgate.sources import Plain

__all__ = ["GROUP", "KIND", "VERSION", "to_istio"]

GROUP, VERSION, KIND = "security.istio.io", "v1", "AuthorizationPolicy"
DRY_RUN = "istio.io/dry-run"


def to_istio(items: Sequence[Item], job: Job) -> None:
    """All policies of a cluster: which of them can be converted depends on the others."""
    aimed: list[Aimed] = []
    for item in items:
        gep = read(item)
        if gep is None:
            refuse_tier(item, job)
        elif (one := _aim(gep, job)) is not None:
            aimed.append(one)
    aimed = list(_at_waypoints(aimed, job))
    chosen = one_level_each(aimed, job)
    for one in chosen:
        _write(one, chosen, job)


def refuse_tier(item: Item, job: Job) -> None:
    """Cluster-wide policies have no equal."""
    message = f"{item.policy.ref} is of a cluster-wide tier, and is not converted"
    span = item.document.locate("spec", "tier")
    job.keep(item.document, codes.TIER, message, span, help="write its rules into policies of the namespaces")


# Targets


def _aim(gep: Gep, job: Job) -> Aimed | None:
    if gep.namespace == job.options.istio_root_namespace:
        message = f"a policy in {gep.namespace} means the whole mesh in Istio: {gep.policy.ref} is not converted"
        job.keep(gep.document, codes.ROOT_NAMESPACE, message, gep.document.locate("metadata", "namespace"))
        return None
    if job.settings.mesh_mode is MeshMode.AMBIENT:
        if gep.policy.audit:
            message = f"ambient Istio may enforce a dry run: {gep.policy.ref} is not converted"
            job.keep(gep.document, codes.AUDIT, message, gep.document.locate("metadata", "annotations"))
            return None
        services = tuple(target for target in gep.targets if isinstance(target, ServiceTarget))
        reading = job.settings.section(GepSettings).service_target
        if services and (gep.is_application or reading is ServiceReading.TRAFFIC):
            return _aim_at_services(gep, services, job)
    pods = [resolved(target, gep, job) for target in gep.targets]
    chosen = tuple(target for target in pods if target is not None)
    if len(chosen) < len(pods) or not all(_selectable(target, gep, job) for target in chosen):
        return None
    return Aimed(gep, chosen)


def _selectable(target: PodsTarget, gep: Gep, job: Job) -> bool:
    if label_sets(target.selector) is not None:
        return True
    message = f"Istio selects pods by labels with values only: {gep.policy.ref} is not converted"
    way_out = "give the pods that are meant a label, and select that"
    job.keep(gep.document, codes.SELECTOR, message, target.span, help=way_out)
    return False


def _aim_at_services(gep: Gep, services: tuple[ServiceTarget, ...], job: Job) -> Aimed | None:
    if job.settings.section(GepSettings).service_target is ServiceReading.WORKLOADS or len(services) < len(gep.targets):
        why = "traffic to the pods themselves would go round the waypoint"
        message = f"{why}: {gep.policy.ref} is not converted"
        way_out = "set serviceTarget: traffic if only traffic to the Service is meant"
        job.keep(gep.document, codes.WAYPOINT, message, services[0].span, help=way_out)
        return None
    for service in services:
        message = f"only a waypoint of Service {gep.namespace}/{service.name} enforces this"
        job.lose(codes.WAYPOINT, message, service.span, help="see that the Service has one: istioctl waypoint status")
    return Aimed(gep, services=services)


def _at_waypoints(aimed: Sequence[Aimed], job: Job) -> Iterator[Aimed]:
    """Behind a waypoint, policies on the pods see the waypoint for a client: they and it cannot both be right."""
    with_pods = {one.gep.namespace for one in aimed if one.pods}
    for one in aimed:
        if one.services and one.gep.namespace in with_pods:
            why = f"other policies of {one.gep.namespace} target pods, which see the waypoint for a client"
            message = f"{why}: {one.gep.policy.ref} is not converted"
            job.keep(one.gep.document, codes.WAYPOINT, message, one.services[0].span)
        else:
            yield one


# Manifests


def _write(one: Aimed, among: Sequence[Aimed], job: Job) -> None:
    gep = one.gep
    rules = istio_rules(gep, job)
    places = _places(one)
    for number, place in enumerate(places, 1):
        name = gep.name if len(places) == 1 else f"{gep.name}-{number}"
        if rules or not gep.denies:
            _policy(one, job, name, place, str(gep.policy.action), rules)
        if gep.denies and closes(gep, job) and not any(_opens_alike(one, other) for other in among):
            _policy(one, job, f"{name}-allow-nothing", place, "ALLOW", [])


def _opens_alike(denying: Aimed, other: Aimed) -> bool:
    """Whether an ALLOW that is written anyway closes all that the DENY is to close."""
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
    theirs = [written(target.selector) for target in other.pods]
    by_pod = {} in theirs or all(written(target.selector) in theirs for target in denying.pods)
    names = {target.name for target in other.services}
    return by_pod and all(target.name in names for target in denying.services)


def _places(one: Aimed) -> list[Manifest]:
    """What each policy of Istio says of where it applies; nothing is all pods of its namespace."""
    places: list[Manifest] = []
    if one.services:
        refs: list[Plain] = [{"group": "", "kind": "Service", "name": target.name} for target in one.services]
        places.append({"targetRefs": refs})
    for target in one.pods:
        for labels in label_sets(target.selector) or ():
            place: Manifest = {"selector": {"matchLabels": dict[str, Plain](labels)}} if labels else {}
            if place not in places:
                places.append(place)
    return places


def _policy(one: Aimed, job: Job, name: str, place: Manifest, action: str, rules: Sequence[Plain]) -> None:
    gep = one.gep
    chosen = job.name(f"{KIND}.{GROUP}", gep.namespace, name)
    noted = {DRY_RUN: "true"} if gep.policy.audit else {}
    if one.others:
        noted[CONVERTED_FROM] = ", ".join(origin_of(document) for document in (gep.document, *one.others))
    manifest: Manifest = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": metadata_of(gep.document, chosen, annotations=noted),
        "spec": {**place, "action": action, "rules": list(rules)},
    }
    job.write(gep.document, manifest)
