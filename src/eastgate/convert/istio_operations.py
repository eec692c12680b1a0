"""Converts operations of Istio's rules to ports, paths and methods. Other APIs cannot express their other fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.cluster import GatewaysMatching, PodsMatching, Selector, Workload
from eastgate.convert import codes
from eastgate.convert.istio_callers import NotExpressibleError, Part
from eastgate.convert.istio_rules import lose_paths
from eastgate.convert.model import Job
from eastgate.convert.selectors import may_meet
from eastgate.dialects import gep3779
from eastgate.dialects.gep3779.model import Tier
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy, IstioPolicy, MtlsMode, PeerAuthentication
from eastgate.dialects.istio.planes import ServingPlane, plane_of
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.dialects.istio.values import is_template
from eastgate.dialects.istio.waypoints import bindings_of, is_waypoint_pod
from eastgate.dialects.istio.written import Values, WrittenValue
from eastgate.ir.paths import encoded_path, path_problem
from eastgate.reading.manifests import Document

# Targets of Istio's policies, and whether a policy on pods is equivalent.


def namespaces_of(policy: IstioPolicy, document: Document, job: Job) -> list[str]:
    """Return the namespaces of a policy: its own, or all known namespaces for a policy of the root namespace."""
    if not policy.in_root or policy.refs:
        return [policy.namespace]
    homes = {item.policy.ref.namespace for item in job.items if item.policy.ref.namespace is not None}
    names = sorted({*job.world.namespaces_in_use(), *homes})
    message = f"it applies to the whole mesh, and became a policy in each known namespace: {', '.join(names)}"
    way_out = "give the manifests of all namespaces with -f, and convert again after adding a namespace"
    job.lose(codes.ROOT_COPIES, message, document.locate("metadata", "namespace"), help=way_out)
    return names


def check_attachment(policy: IstioAuthorizationPolicy, document: Document, namespace: str, job: Job) -> None:
    """Raise NotExpressibleError if a policy on pods of this namespace cannot be equivalent to the policy of Istio."""
    spec = document.locate("spec")
    if policy.action in (Action.CUSTOM, Action.AUDIT):
        raise NotExpressibleError(codes.ACTION, f"no other API has {policy.action}", document.locate("spec", "action"))
    if policy.refs:
        kinds = " and ".join(dict.fromkeys(ref.kind for ref in policy.refs))
        raise NotExpressibleError(codes.ATTACHMENT, f"it targets a {kinds}", document.locate("spec", "targetRefs"))
    why = beyond_pods(policy.selector, namespace, job)
    if why is not None:
        raise NotExpressibleError(codes.ATTACHMENT, why, spec)
    for item in job.items:
        other = item.policy
        if isinstance(other, gep3779.Policy) and (
            other.tier is not Tier.NAMESPACED or other.ref.namespace == namespace
        ):
            raise NotExpressibleError(
                codes.POLICIES_MEET, f"namespace {namespace} has policies of GEP-3779 already", spec
            )


def _pods(selector: Selector, namespace: str, job: Job) -> list[Workload]:
    return [job.world.workloads[key] for key in sorted(job.world.select(PodsMatching(namespace, selector)))]


def _disables(policy: PeerAuthentication) -> bool:
    return MtlsMode.DISABLE in (policy.mode, *(port.mode for port in policy.ports))


def _may_meet(peer: PeerAuthentication, selector: Selector, namespace: str) -> bool:
    return (peer.in_root or peer.namespace == namespace) and may_meet(peer.selector, selector)


def beyond_pods(selector: Selector, namespace: str, job: Job) -> str | None:
    """Return why a policy of Istio on these pods also affects Gateways, waypoints or anonymous callers; None if not."""
    if job.world.select_gateways(GatewaysMatching(namespace, selector)):
        return f"in Istio it also applies to Gateways of {namespace}"
    for workload in _pods(selector, namespace, job):
        at_ztunnel = _plane(workload, job) is ServingPlane.ZTUNNEL
        bound = at_ztunnel and bindings_of(workload, job.world, job.settings.trust_domain)
        if bound or is_waypoint_pod(workload, job.world):
            return f"{workload.key} has a waypoint, or is one"
    peers = (item.policy for item in job.items if isinstance(item.policy, PeerAuthentication))
    disabling = (peer for peer in peers if _disables(peer) and _may_meet(peer, selector, namespace))
    peer = next(disabling, None)
    return f"with {peer.ref} Istio has no identities on some ports" if peer is not None else None


def is_at_ztunnel(selector: Selector, namespace: str, job: Job) -> bool:
    """Return whether ztunnel is the proxy of some known selected pods, or of other pods of the namespace."""
    unknown = Workload(f"{namespace}/-", namespace, "-")
    return any(
        _plane(workload, job) is ServingPlane.ZTUNNEL for workload in (unknown, *_pods(selector, namespace, job))
    )


def _plane(workload: Workload, job: Job) -> ServingPlane:
    return plane_of(workload, job.world, job.settings.section(IstioSettings).istio_data_plane)


OPERATION_FIELDS: Final = ("ports", "destination.port", "methods", "paths")
"""The fields and condition keys that `read_operation` accepts."""

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
_TOKEN = regex(r"[!#$%&'+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Operation:
    """Ports, paths and methods. ANY entry of each list must match; None matches everything."""

    ports: tuple[int, ...] | None = None
    paths: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    paths_span: Span | None = None


def read_operation(parts: Sequence[Part], job: Job, *, denies: bool) -> Operation:
    """Read an operation that requires ALL parts.

    Raises NotExpressibleError; from an ALLOW it may leave out values instead.
    """
    ports: tuple[int, ...] | None = None
    paths, methods, paths_span = None, None, None
    for name, values in parts:
        match name:
            case "ports" | "destination.port":
                numbers = _ports(values, job, denies=denies)
                ports = numbers if ports is None else tuple(port for port in ports if port in numbers)
            case "methods":
                methods = _methods(values, job, denies=denies)
            case _:
                paths, paths_span = _paths(values, job, denies=denies), values.span
    return Operation(ports, paths, methods, paths_span)


def _expressible(
    values: Values, is_expressible: Callable[[WrittenValue], bool], what: str, job: Job, *, denies: bool
) -> list[str]:
    """Return the values that the target API can express. The others are left out of an ALLOW."""
    if values.not_values:
        raise NotExpressibleError(codes.FIELD, f"the target cannot express {what} that must not match", values.span)
    values_kept = [value for value in values.values if is_expressible(value)]
    if not values_kept or (denies and len(values_kept) < len(values.values)):
        raise NotExpressibleError(codes.FIELD, f"the target cannot express these {what}", values.span)
    for value in values.values:
        if value not in values_kept:
            job.lose(codes.FIELD, f"the target cannot express `{value}`, which is left out", value.span)
    return list(dict.fromkeys(value.text for value in values_kept))


def _ports(values: Values, job: Job, *, denies: bool) -> tuple[int, ...]:
    values_kept = _expressible(values, lambda value: int(value.text) > 0, "ports", job, denies=denies)
    return tuple(dict.fromkeys(map(int, values_kept)))


def _paths(values: Values, job: Job, *, denies: bool) -> tuple[str, ...]:
    values_kept = _expressible(values, _is_path, "paths", job, denies=denies)
    lose_paths(job, values.span)
    return tuple(map(encoded_path, values_kept))


def _is_path(value: WrittenValue) -> bool:
    text = value.text
    bare = text[1:] if text.startswith("*") else text.removesuffix("*")
    if "*" in bare or is_template(text) or not text.startswith(("/", "*")):
        return False
    return path_problem(text, wildcard=True) is None


def _methods(values: Values, job: Job, *, denies: bool) -> tuple[str, ...]:
    """Return methods. Patterns and excluded methods become a list of the standard methods that match."""
    is_pattern = bool(values.not_values) or any("*" in value.text for value in values.values)
    if not is_pattern:
        return tuple(_expressible(values, _is_method, "methods", job, denies=denies))
    if denies:
        raise NotExpressibleError(codes.FIELD, "the target cannot express methods by patterns", values.span)
    named = [value.text for value in values.values if "*" not in value.text and _is_method(value)]
    asked = [text for text in dict.fromkeys((*named, *_METHODS)) if _is_matched(text, values)]
    if not asked:
        raise NotExpressibleError(codes.FIELD, "the target cannot express these methods", values.span)
    job.lose(codes.FIELD, f"of these methods only the standard ones are kept: {', '.join(asked)}", values.span)
    return tuple(asked)


def _is_method(value: WrittenValue) -> bool:
    text = value.text
    return _TOKEN.fullmatch(text) is not None and (text.upper() not in _METHODS or text in _METHODS)


def _is_matched(method: str, values: Values) -> bool:
    wanted = not values.values or any(_matches(value.text, method) for value in values.values)
    return wanted and not any(_matches(value.text, method) for value in values.not_values)


def _matches(pattern: str, method: str) -> bool:
    if pattern.startswith("*"):
        return method.endswith(pattern[1:])
    return method.startswith(pattern[:-1]) if pattern.endswith("*") else method == pattern
