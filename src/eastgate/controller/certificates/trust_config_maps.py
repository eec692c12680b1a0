"""The ConfigMaps with the roots by which proxies know the control plane, in each namespace that has proxies."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from eastgate.cluster import World
from eastgate.cluster.proxies import GATEWAY_CLASS
from eastgate.control.identity import TrustBundles
from eastgate.controller.certificates.ca_secret import CA_NAME
from eastgate.reading.kubernetes import ApiError, JsonObject, Resource

_LOG = logging.getLogger(__name__)
CONFIG_MAP_RESOURCE: Final = Resource("", "v1", "configmaps", "ConfigMap")
INJECTION_LABEL: Final = "eastgate.dev/injection"
_KEY: Final = "ca.crt"
_UNWRITTEN: Final = "a namespace without the CA"


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


class ConfigMapApi(Protocol):
    """The calls to the API server that are needed: those of `eastgate.reading.kubernetes.Connection`."""

    async def get(self, resource: Resource, name: str, namespace: str) -> JsonObject: ...

    async def apply(self, resource: Resource, obj: Mapping[str, object]) -> JsonObject: ...


async def write_config_maps(api: ConfigMapApi, namespaces: Iterable[str], bundles: TrustBundles) -> frozenset[str]:
    """Have these namespaces know the roots; return those that do.

    One that takes none, since it is being deleted, keeps no other from it.
    """
    knowing = set()
    for namespace in sorted(namespaces):
        try:
            await _write(api, trust_config_map(namespace, bundles))
            knowing.add(namespace)
            over = {"namespace": namespace, "over": _UNWRITTEN}
            _LOG.info("the namespace %s has the CA now", namespace, extra=over)
        except ApiError as error:
            trouble = {"namespace": namespace, "trouble": _UNWRITTEN}
            _LOG.warning("the namespace %s does not get the CA: %s", namespace, error, extra=trouble)
    return frozenset(knowing)


async def _write(api: ConfigMapApi, wanted: JsonObject) -> None:
    try:
        existing = await api.get(CONFIG_MAP_RESOURCE, CA_NAME, wanted["metadata"]["namespace"])
    except ApiError as error:
        if not error.is_missing:
            raise
        existing = {}
    if (existing.get("data") or {}).get(_KEY) != wanted["data"][_KEY]:
        await api.apply(CONFIG_MAP_RESOURCE, wanted)
