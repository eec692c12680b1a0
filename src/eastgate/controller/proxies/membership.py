"""Which proxy a pod is: the sidecar of a workload, or one of the proxies of a Gateway.

A node id is a claim. What counts is the pod that a credential was issued to, by its name and uid, and its account, as
the world has them now.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from eastgate.cluster import Gateway, Workload, World
from eastgate.envoy.server.authentication import AuthenticatedProxy, AuthenticationError
from eastgate.mesh.gateways import gateway_node
from eastgate.records import dataclass

__all__ = [
    "BOUND",
    "GATEWAY_CLASS",
    "GATEWAY_LABEL",
    "GATEWAY_PREFIX",
    "PROXY_LABEL",
    "SIDECAR",
    "PodIdentity",
    "find_pod",
    "gateway_of_pod",
    "identify",
    "split_proxy",
]

PROXY_LABEL: Final = "eastgate.dev/proxy"
SIDECAR: Final = "sidecar"  # all connections of the pod are redirected to it
BOUND: Final = "bound"  # it opens the ports of the pod itself
GATEWAY_LABEL: Final = "eastgate.dev/gateway"
GATEWAY_CLASS: Final = "eastgate"
_OWNERS: Final = ("Deployment", "Gateway")  # kinds
GATEWAY_PREFIX: Final = gateway_node("", "").removesuffix("/")


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """The pod that a credential proves, and its account."""

    namespace: str
    pod: str
    uid: str
    account: str

    @property
    def key(self) -> str:
        """Return its name among the world's workloads."""
        return f"{self.namespace}/{self.pod}"


def identify(world: World, proven: PodIdentity, node_id: str) -> AuthenticatedProxy:
    """Return which proxy a pod is, if it is the one that it says to be. Raises AuthenticationError."""
    pod = find_pod(world, proven)
    gateway = gateway_of_pod(world, pod)
    if gateway is not None:
        node = gateway_node(gateway.namespace, gateway.name)
        expected = AuthenticatedProxy(f"{node}/{pod.name}", node)
    else:
        expected = AuthenticatedProxy(pod.key, pod.key)
    if node_id != expected.name:
        raise AuthenticationError(f"the token is that of {expected.name}, and of no other proxy")
    return expected


def find_pod(world: World, proven: PodIdentity) -> Workload:
    """Return the pod that a credential was issued to. Raises AuthenticationError where it is gone, or another."""
    pod = world.workloads.get(proven.key)
    if pod is None or not pod.is_pod or pod.derived:
        raise AuthenticationError(f"there is no pod {proven.key}")
    if not proven.uid or pod.uid != proven.uid:
        raise AuthenticationError(f"{proven.key} is another pod than the one of the token")
    if pod.service_account != proven.account:
        raise AuthenticationError(f"{proven.key} does not run as the account of the token")
    return pod


def gateway_of_pod(world: World, pod: Workload) -> Gateway | None:
    """Return the Gateway of our class that a pod serves; None where it serves none.

    Its label says that it serves one, it belongs to a Deployment that belongs to the Gateway, and it runs as the
    account with the name of the Gateway.
    """
    if GATEWAY_LABEL not in pod.labels:
        return None
    owners = (above.name for below, above in pairwise(pod.owners) if (below.kind, above.kind) == _OWNERS)
    gateway = world.gateways.get(f"{pod.namespace}/{next(owners, '')}")
    if gateway is None or gateway.gateway_class != GATEWAY_CLASS or pod.service_account != gateway.name:
        return None
    return gateway


def split_proxy(proxy: str) -> str:
    """Return the node of a proxy by its name on the wire: pods of a Gateway share the Gateway's."""
    return proxy.rpartition("/")[0] if proxy.startswith(GATEWAY_PREFIX) else proxy
