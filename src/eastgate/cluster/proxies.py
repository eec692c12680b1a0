"""The presence of Eastgate's proxies in pods: one notion for enforcement, statuses, admission and `--cluster`.

The containers of a pod never change, so that the injected container is proof of a proxy. Labels can be changed: a label
that claims a proxy, without that container, proves nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from eastgate.cluster.gateways import Gateway
from eastgate.cluster.pods import PROXY_CONTAINER, Workload
from eastgate.cluster.world import World

PROXY_LABEL: Final = "eastgate.dev/proxy"
SIDECAR: Final = "sidecar"  # all connections of the pod are redirected to it
BOUND: Final = "bound"  # it opens the ports of the pod itself
GATEWAY_LABEL: Final = "eastgate.dev/gateway"
GATEWAY_CLASS: Final = "eastgate"
EXCLUDED_INBOUND_PORTS: Final = "eastgate.dev/exclude-inbound-ports"
_OWNERS: Final = ("Deployment", "Gateway")  # kinds
_LAST_PORT: Final = 65535


class ProxyPresence(enum.Enum):
    """The presence of Eastgate's proxy before a pod, which enforces policies there."""

    PRESENT = enum.auto()
    ABSENT = enum.auto()
    UNPROVEN = enum.auto()  # its label claims a proxy, but it has no container of that name
    UNBORN = enum.auto()  # the API server does not have the pod yet: admission decides whether it gets a proxy


def proxy_presence(world: World, pod: Workload) -> ProxyPresence:
    """Return whether a pod has a proxy. A pod on the network of its node has none, nor has a proxy of a Gateway."""
    if not pod.is_pod or pod.host_network or gateway_of_pod(world, pod) is not None:
        return ProxyPresence.ABSENT
    label = pod.labels.get(PROXY_LABEL)
    if PROXY_CONTAINER in pod.mesh_proxies:
        return ProxyPresence.PRESENT
    if label in (SIDECAR, BOUND):
        return ProxyPresence.UNPROVEN
    return ProxyPresence.ABSENT if pod.uid else ProxyPresence.UNBORN


def has_identity(world: World, pod: Workload) -> bool:
    """Return whether a pod may prove its account to the workloads that it calls: by a sidecar or gateway proxy."""
    return proxy_presence(world, pod) is not ProxyPresence.ABSENT or gateway_of_pod(world, pod) is not None


def gateway_of_pod(world: World, pod: Workload) -> Gateway | None:
    """Return the Gateway of Eastgate's class that a pod serves, or None.

    The pod has the label, its Deployment belongs to the Gateway, and it runs as the account with the name of the
    Gateway.
    """
    if GATEWAY_LABEL not in pod.labels:
        return None
    owners = (above.name for below, above in pairwise(pod.owners) if (below.kind, above.kind) == _OWNERS)
    gateway = world.gateways.get(f"{pod.namespace}/{next(owners, '')}")
    if gateway is None or gateway.gateway_class != GATEWAY_CLASS or pod.service_account != gateway.name:
        return None
    return gateway


def excluded_inbound_ports(annotations: Mapping[str, str]) -> frozenset[int]:
    """Return the inbound ports of a running pod that are not redirected; none if its annotation is invalid.

    The redirection follows the annotation at the creation of the pod. A later change of it changes only this result.
    """
    words = [word.strip() for word in annotations.get(EXCLUDED_INBOUND_PORTS, "").split(",") if word.strip()]
    return frozenset(map(int, words)) if all(map(is_port, words)) else frozenset()


def is_port(word: str) -> bool:
    """Return whether a text is a port number."""
    return word.isascii() and word.isdigit() and 0 < int(word) <= _LAST_PORT
