"""Which proxy a pod is: the sidecar of a workload, or one of the proxies of a Gateway.

A node id is a claim. What counts is the pod that a credential was issued to, by its name and uid, and its account, as
the world has them now.
"""

from __future__ import annotations

from typing import Final

from eastgate.basics.records import dataclass
from eastgate.cluster import Workload, World
from eastgate.cluster.proxies import gateway_of_pod
from eastgate.control.gateways import gateway_node
from eastgate.envoy.server.authentication import AuthenticatedProxy, AuthenticationError

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


def split_proxy(proxy: str) -> str:
    """Return the node of a proxy by its name on the wire: pods of a Gateway share the Gateway's."""
    return proxy.rpartition("/")[0] if proxy.startswith(GATEWAY_PREFIX) else proxy
