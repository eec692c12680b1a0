"""From the cases of a table to calls: the pods behind the destination, and the caller."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.istio.client import HttpRequest
from tests.istio.cluster import Cluster, account_of, address_of, group_of, key_of, labels_of
from tests.istio.gateways import GATEWAY_NAME
from tests.istio.tables import Manifest
from tests.istio.tokens import with_token

ANY_ADDRESS = "198.18.99.99"
"""The address of callers without a known address."""
ANY_HOST = "host.invalid"


class Unanswerable(Exception):  # noqa: N818 - a property of the question
    """Real Istio cannot answer this question, or not in this test."""


@dataclass(frozen=True)
class Destination:
    """The pods of the destination, and the port of each. `service` is the called Service and its port."""

    pods: tuple[str, ...]
    port: int
    kind: str  # the kind of proxy: sidecar, router or ambient; "none" for no proxy
    service: tuple[str, int] | None = None


@dataclass(frozen=True)
class Caller:
    """The caller: with plaintext if it has no identity, and with any address if none is known."""

    identity: str | None
    address: str


def destination_of(case: Manifest, cluster: Cluster) -> Destination:
    """Return the destination of `to`."""
    kind, _, key = case["to"].partition(":")
    port = case.get("port")
    match kind:
        case "pod":
            if key not in cluster.pods:
                raise Unanswerable(f"there is no pod {key}")
            if port is None:
                raise Unanswerable("the port is unknown")
            return Destination((key,), port, proxy_kind(cluster.pods[key], cluster))
        case "service":
            return _of_service(key, port, cluster)
        case "gateway":
            return _of_gateway(key, port, cluster)
    raise Unanswerable(f"a question to a {kind}")


def proxy_kind(pod: Manifest, cluster: Cluster) -> str:
    """Return the kind of a pod's proxy."""
    if cluster.is_gateway(pod):
        return "router"
    match cluster.data_plane:
        case "auto" if cluster.is_ambient(pod):
            return "ambient"
        case "auto" if not cluster.is_injected(pod):
            return "none"
        case "ambient":
            return "ambient"
    return "sidecar"


def _of_service(key: str, port: int | None, cluster: Cluster) -> Destination:
    service = cluster.service(key)
    if service is None:
        raise Unanswerable(f"there is no Service {key}")
    ports = service["spec"].get("ports") or ()
    named = next((each for each in ports if each["port"] == port), None)
    if named is None or port is None:
        raise Unanswerable(f"the Service has no port {port}")
    pods = cluster.selected(key.partition("/")[0], service["spec"].get("selector"))
    if not pods:
        raise Unanswerable("the Service has no pods")
    target = target_port(named, cluster.pods[pods[0]])
    if target is None:
        raise Unanswerable(f"no container has a port named {named['targetPort']}")
    return Destination(tuple(pods), target, proxy_kind(cluster.pods[pods[0]], cluster), (key, port))


def target_port(port: Manifest, pod: Manifest) -> int | None:
    """Return the port of a pod for a port of a Service, or None if no container has its name."""
    target: str | int = port.get("targetPort") or port["port"]
    if not isinstance(target, str) or target.isdigit():
        return int(target)
    ports = (each for container in pod["spec"]["containers"] for each in container.get("ports") or ())
    return next((each["containerPort"] for each in ports if each.get("name") == target), None)


def _of_gateway(key: str, port: int | None, cluster: Cluster) -> Destination:
    namespace, _, name = key.partition("/")
    gateway = next((one for one in cluster.of_kind("Gateway") if key_of(one) == key), None)
    if gateway is None:
        raise Unanswerable(f"there is no Gateway {key}")
    if group_of(gateway) == "networking.istio.io":  # its selector may select in any namespace
        namespaces = sorted({pod["metadata"]["namespace"] for pod in cluster.pods.values()})
        pods = [pod for each in namespaces for pod in cluster.selected(each, gateway["spec"].get("selector"))]
    else:
        pods = cluster.selected(namespace, {GATEWAY_NAME: name})
    if not pods:
        raise Unanswerable("the Gateway has no pods")
    if port is None:
        raise Unanswerable("the port is unknown")
    return Destination((sorted(pods)[0],), port, "router")


def caller_of(case: Manifest, cluster: Cluster) -> Caller:
    """Return the caller of `from`."""
    kind, _, key = case["from"].partition(":")
    identity: str | None = None
    address: str | None = None
    match kind:
        case "sa":
            namespace, _, account = key.partition("/")
            identity = f"spiffe://{cluster.trust_domain}/ns/{namespace}/sa/{account}"
            pods = (pod for pod in cluster.pods.values() if pod["metadata"]["namespace"] == namespace)
            address = next((address_of(pod) for pod in pods if account_of(pod) == account), None)
        case "spiffe":
            identity = case["from"]
        case "pod":
            if key not in cluster.pods:
                raise Unanswerable(f"there is no pod {key}")
            identity, address = cluster.identity(key), address_of(cluster.pods[key])
        case "ip":
            address = key
        case "anonymous":
            pass
        case _:
            raise Unanswerable(f"a question from a {kind}")
    in_plaintext = identity is None or bool(case.get("plaintext"))
    return Caller(None if in_plaintext else identity, case.get("sourceIP") or address or ANY_ADDRESS)


def request_of(
    case: Manifest, cluster: Cluster, pods: Iterable[str] = (), *, waypoint_of: str | None = None
) -> HttpRequest | None:
    """Return the request of a case to some pods, or None for bytes. Attributes that the case leaves out get a value.

    `waypoint_of` is the Service of the first waypoint; it is empty if a pod is called through a waypoint.
    """
    http: Manifest | None = case.get("http")
    claims = case.get("claims")
    if http is None and claims is None:
        return None
    if claims is not None:
        http = with_token(http or {}, claims, _token_rules(cluster, pods, waypoint_of))
    headers = [*_header_lines((http or {}).get("headers") or {})]
    forwarded = case.get("forwardedFor")
    if forwarded:
        headers.append(("x-forwarded-for", ",".join(forwarded) if isinstance(forwarded, list) else forwarded))
    http = http or {}
    return HttpRequest(http.get("method", "GET"), http.get("path", "/"), http.get("host", ANY_HOST), tuple(headers))


def _token_rules(cluster: Cluster, pods: Iterable[str], waypoint_of: str | None) -> list[Manifest]:
    """Return the rules for tokens that apply to some pods, or to their waypoint."""
    places = [(pod.partition("/")[0], labels_of(cluster.pods[pod]).items()) for pod in pods]
    rules: list[Manifest] = []
    for policy in cluster.of_kind("RequestAuthentication"):
        spec = policy.get("spec") or {}
        selected = ((spec.get("selector") or {}).get("matchLabels") or {}).items()
        namespace = policy["metadata"]["namespace"]
        is_here = any(
            namespace in (home, cluster.mesh["rootNamespace"]) and selected <= labels for home, labels in places
        )
        if is_here and _meets_target(spec, waypoint_of):
            rules += spec.get("jwtRules") or ()
    return rules


def _meets_target(spec: Manifest, waypoint_of: str | None) -> bool:
    """Return whether a policy applies: one without a target or, for a waypoint, one with a matching target."""
    targets = spec.get("targetRefs") or ([spec["targetRef"]] if "targetRef" in spec else [])
    if waypoint_of is None:
        return not targets or any(target["kind"] == "Gateway" for target in targets)
    return any(target["kind"] != "Service" or target["name"] == waypoint_of for target in targets)


def _header_lines(headers: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, str(value))
        for name, values in headers.items()
        for value in (values if isinstance(values, list) else [values])
    ]
