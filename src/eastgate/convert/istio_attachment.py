"""What a policy of Istio is about, and whether a policy on pods can say the same."""

from __future__ import annotations

from eastgate.cluster import GatewaysMatching, PodsMatching, Selector, Workload
from eastgate.convert import codes
from eastgate.convert.istio_callers import UnsayableError
from eastgate.convert.model import Job
from eastgate.convert.selectors import may_meet
from eastgate.dialects import gep3779
from eastgate.dialects.gep3779.model import Tier
from eastgate.dialects.istio.authentications import MtlsMode, PeerAuthentication
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy, IstioPolicy
from eastgate.dialects.istio.planes import ServingPlane, plane_of
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.dialects.istio.waypoints import bindings_of, is_waypoint_pod
from eastgate.reading.manifests import Document


def namespaces_of(policy: IstioPolicy, document: Document, job: Job) -> list[str]:
    """Return the namespaces that a policy is about: its own, or in the root namespace all that are known."""
    if not policy.in_root or policy.refs:
        return [policy.namespace]
    homes = {item.policy.ref.namespace for item in job.items if item.policy.ref.namespace is not None}
    names = sorted({*job.world.namespaces_in_use(), *homes})
    message = f"it is for the whole mesh, and became a policy in each namespace that is known: {', '.join(names)}"
    way_out = "give the manifests of all namespaces with -f, and convert again when there are others"
    job.lose(codes.ROOT_COPIES, message, document.locate("metadata", "namespace"), help=way_out)
    return names


def check_attachment(policy: IstioAuthorizationPolicy, document: Document, namespace: str, job: Job) -> None:
    """Raise UnsayableError where a policy on the pods of a namespace would not be what this one is there."""
    spec = document.locate("spec")
    if policy.action in (Action.CUSTOM, Action.AUDIT):
        raise UnsayableError(codes.ACTION, f"nothing else has {policy.action}", document.locate("spec", "action"))
    if policy.refs:
        kinds = " and ".join(dict.fromkeys(ref.kind for ref in policy.refs))
        raise UnsayableError(codes.ATTACHMENT, f"it targets a {kinds}", document.locate("spec", "targetRefs"))
    why = beyond_pods(policy.selector, namespace, job)
    if why is not None:
        raise UnsayableError(codes.ATTACHMENT, why, spec)
    for item in job.items:
        other = item.policy
        if isinstance(other, gep3779.Policy) and (
            other.tier is not Tier.NAMESPACED or other.ref.namespace == namespace
        ):
            raise UnsayableError(codes.POLICIES_MEET, f"namespace {namespace} has policies of GEP-3779 already", spec)


def _pods(selector: Selector, namespace: str, job: Job) -> list[Workload]:
    return [job.world.workloads[key] for key in sorted(job.world.select(PodsMatching(namespace, selector)))]


def _disables(policy: PeerAuthentication) -> bool:
    return MtlsMode.DISABLE in (policy.mode, *(port.mode for port in policy.ports))


def _may_meet(peer: PeerAuthentication, selector: Selector, namespace: str) -> bool:
    return (peer.in_root or peer.namespace == namespace) and may_meet(peer.selector, selector)


def beyond_pods(selector: Selector, namespace: str, job: Job) -> str | None:
    """Return why a policy of Istio on these pods is not about them and their callers alone; None where it is."""
    if job.world.select_gateways(GatewaysMatching(namespace, selector)):
        return f"in Istio it is for Gateways of {namespace} as well"
    for workload in _pods(selector, namespace, job):
        at_ztunnel = _plane(workload, job) is ServingPlane.ZTUNNEL
        bound = at_ztunnel and bindings_of(workload, job.world, job.settings.trust_domain)
        if bound or is_waypoint_pod(workload, job.world):
            return f"a waypoint is before {workload.key}, or is that pod"
    peers = (item.policy for item in job.items if isinstance(item.policy, PeerAuthentication))
    disabling = (peer for peer in peers if _disables(peer) and _may_meet(peer, selector, namespace))
    peer = next(disabling, None)
    return f"with {peer.ref} Istio has no identities on some ports" if peer is not None else None


def is_at_ztunnel(selector: Selector, namespace: str, job: Job) -> bool:
    """Return whether ztunnel is before some selected pods that are known, or before others of the namespace."""
    unknown = Workload(f"{namespace}/-", namespace, "-")
    return any(
        _plane(workload, job) is ServingPlane.ZTUNNEL for workload in (unknown, *_pods(selector, namespace, job))
    )


def _plane(workload: Workload, job: Job) -> ServingPlane:
    return plane_of(workload, job.world, job.settings.section(IstioSettings).istio_data_plane)
