"""The ConfigMaps with the roots by which proxies know the control plane, in each namespace that has proxies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from eastgate.cluster import World
from eastgate.controller.certificates.ca_secret import CA_NAME
from eastgate.controller.proxies.membership import GATEWAY_CLASS
from eastgate.identity import TrustBundles
from eastgate.kubernetes import JsonObject, Resource

__all__ = ["CONFIG_MAP_RESOURCE", "INJECTION_LABEL", "namespaces_with_proxies", "trust_config_map"]

CONFIG_MAP_RESOURCE: Final = Resource("", "v1", "configmaps", "ConfigMap")
INJECTION_LABEL: Final = "eastgate.dev/injection"
_KEY: Final = "ca.crt"


def namespaces_with_proxies(world: World, sites: Iterable[str]) -> frozenset[str]:
    """Return the namespaces where a ConfigMap must be, by what there is and what may be injected next.

    `sites` are the workloads with a sidecar.
    """
    injected = {name for name, each in world.namespaces.items() if each.labels.get(INJECTION_LABEL) == "enabled"}
    gateways = {gateway.namespace for gateway in world.gateways.values() if gateway.gateway_class == GATEWAY_CLASS}
    return frozenset(injected | gateways | {key.partition("/")[0] for key in sites})


def trust_config_map(namespace: str, bundles: TrustBundles) -> JsonObject:
    """Return the ConfigMap of a namespace."""
    metadata: Mapping[str, object] = {
        "name": CA_NAME,
        "namespace": namespace,
        "labels": {"app.kubernetes.io/managed-by": "eastgate"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_KEY: bundles.pem(bundles.own)}}
