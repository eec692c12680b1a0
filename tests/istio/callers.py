"""The routing of calls to a Service by the proxies of callers: directly, or through the waypoint.

For sidecars and gateways, the tests ask istiod, which gives them endpoints. A ztunnel sends all calls to the waypoint
that istiod has bound to the destination.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.istio.cluster import Cluster, account_of, address_of
from tests.istio.questions import ANY_ADDRESS, caller_of, proxy_kind, target_port
from tests.istio.tables import Manifest


def proxy_of_caller(case: Manifest, cluster: Cluster) -> Manifest | None:
    """Return the sidecar or gateway of a caller with an identity, or None if it has neither.

    An account without pods counts as the account of a pod without labels.
    """
    pod = _calling_pod(case, cluster)
    kind = proxy_kind(pod, cluster) if pod is not None else "none"
    return cluster.proxy(pod, kind) if pod is not None and kind in ("sidecar", "router") else None


def cluster_of(service: str, port: int) -> str:
    """Return the name of Envoy's cluster for a port of a Service."""
    namespace, _, name = service.partition("/")
    return f"outbound|{port}||{name}.{namespace}.svc.cluster.local"


def endpoint_slices(cluster: Cluster) -> Iterator[Manifest]:
    """Yield the EndpointSlices of Services, as a controller of Kubernetes makes them."""
    for service in cluster.of_kind("Service", ""):
        namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
        for pod in cluster.selected(namespace, service["spec"].get("selector")):
            yield {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "name": f"{name}-{pod.partition('/')[2]}",
                    "namespace": namespace,
                    "labels": {"kubernetes.io/service-name": name},
                },
                "addressType": "IPv6" if ":" in address_of(cluster.pods[pod]) else "IPv4",
                "endpoints": [_endpoint(cluster.pods[pod])],
                "ports": [
                    {"name": port.get("name", ""), "port": target_port(port, cluster.pods[pod]), "protocol": "TCP"}
                    for port in service["spec"].get("ports") or ()
                ],
            }


def _endpoint(pod: Manifest) -> Manifest:
    target = {"kind": "Pod", "name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    return {"addresses": [address_of(pod)], "conditions": {"ready": True}, "targetRef": target}


def _calling_pod(case: Manifest, cluster: Cluster) -> Manifest | None:
    identity = caller_of(case, cluster).identity
    if identity is None:
        return None
    if case["from"].startswith("pod:"):
        return cluster.pods[case["from"].removeprefix("pod:")]
    match identity.removeprefix(f"spiffe://{cluster.trust_domain}/").split("/"):
        case ["ns", namespace, "sa", account]:
            pods = (pod for key, pod in cluster.pods.items() if key.startswith(f"{namespace}/"))
            return next((pod for pod in pods if account_of(pod) == account), _unlabelled_pod(namespace, account))
    return None


def _unlabelled_pod(namespace: str, account: str) -> Manifest:
    return {
        "metadata": {"name": f"caller-{account}", "namespace": namespace},
        "spec": {"serviceAccountName": account},
        "status": {"podIP": ANY_ADDRESS},
    }
