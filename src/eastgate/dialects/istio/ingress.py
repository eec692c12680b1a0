"""Gateways as callers: Istio's own go past waypoints, unless a Service asks for them to be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from eastgate.cluster import GATEWAY_NAME_LABEL, PodsAcross, PodsMatching, Selector, Target, World, service_account_id
from eastgate.dialects.istio.targets import WAYPOINT_CLASS

_INGRESS: Final = "istio.io/ingress-use-waypoint"
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_CLASSES: Final = "istio"  # the classes of Istio's gateways begin so


def is_led_through_waypoint(service: Mapping[str, str], namespace: Mapping[str, str]) -> bool:
    """Return whether the labels of a Service, or else those of its namespace, lead gateways to its waypoint."""
    return (service if _INGRESS in service else namespace).get(_INGRESS) in _TRUE


def gateway_identities(world: World, trust_domain: str) -> frozenset[str]:
    """Return the identities of Istio's gateways. Where no manifest has its pods, istiod names their account."""
    accounts = frozenset(_accounts(world))
    return frozenset(service_account_id(trust_domain, namespace, name) for namespace, name in accounts)


def _accounts(world: World) -> Iterator[tuple[str, str]]:
    for gateway in world.gateways.values():
        if gateway.gateway_class != WAYPOINT_CLASS and gateway.gateway_class.startswith(_CLASSES):
            pods = list(_pods(world, PodsMatching(gateway.namespace, Selector.of({GATEWAY_NAME_LABEL: gateway.name}))))
            yield from pods or [(gateway.namespace, f"{gateway.name}-{gateway.gateway_class}")]
    for declared in world.mesh_gateways.values():
        if declared.selector:
            yield from _pods(world, PodsAcross(Selector.of(), Selector.of(declared.selector)))


def _pods(world: World, target: Target) -> Iterator[tuple[str, str]]:
    pods = (world.workloads[key] for key in sorted(world.select(target)))
    yield from ((pod.namespace, pod.service_account) for pod in pods)
