"""The sidecars that enforce GEP-3779: layers of a pod with one, and of a pod without.

Manifests before injection have no sidecars, so that every pod is taken to get one. In a cluster pods have one or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.cluster import Workload, World
from eastgate.cluster.proxies import (
    EXCLUDED_INBOUND_PORTS,
    ProxyPresence,
    excluded_inbound_ports,
    has_identity,
    proxy_presence,
)
from eastgate.dialects.base import Scene
from eastgate.dialects.gep3779.model import Policy
from eastgate.ir import Attachment, Chain, Known, Layer, PolicyRef, ProxyReading, RawRequest
from eastgate.ir.attributes import IDENTITY, SOURCE_WORKLOAD, Attribute
from eastgate.settings import Sidecars

_SETTING = "sidecars"
_PROXY = "its eastgate proxy"
_WHY = {
    ProxyPresence.PRESENT: "it has one",
    ProxyPresence.ABSENT: "it has no eastgate proxy",
    ProxyPresence.UNPROVEN: "its label claims an eastgate proxy, and it has no container of one",
    ProxyPresence.UNBORN: "no pod of it exists, and whether one gets an eastgate proxy is decided when it is created",
}


@dataclass(frozen=True, slots=True)
class SidecarStance:
    """Whether a workload has a proxy, and the ports that are not redirected to it."""

    presence: ProxyPresence
    excluded: tuple[int, ...] = ()


def stance_of(workload: Workload, attached: Sequence[Attachment[Policy]], scene: Scene) -> SidecarStance | None:
    """Return the stance of a workload; None where no policy is about it, or every pod is taken to have a proxy."""
    if not attached or scene.settings.sidecars is Sidecars.ASSUMED:
        return None
    presence = proxy_presence(scene.world, workload)
    return SidecarStance(presence, tuple(sorted(excluded_inbound_ports(workload.annotations))))


def behind_proxy(layer: Layer, policies: tuple[PolicyRef, ...], stance: SidecarStance, world: World) -> Layer:
    """Return a layer of a workload as its proxy enforces it: without a proxy nothing of it is left."""
    readings = _readings(policies, stance) if policies else ()
    if stance.presence is ProxyPresence.ABSENT:
        return Layer(layer.at, Chain((), readings))

    def stated(chain: Chain) -> Chain:
        return replace(chain, readings=(*chain.readings, *readings))

    cases = tuple(replace(case, chain=stated(case.chain)) for case in layer.cases)
    derivations = (*layer.derivations, ProxiedCallers(world))
    return replace(layer, otherwise=stated(layer.otherwise), cases=cases, derivations=derivations)


def _readings(policies: tuple[PolicyRef, ...], stance: SidecarStance) -> tuple[ProxyReading, ...]:
    presence = stance.presence
    by = None if presence is ProxyPresence.ABSENT else _PROXY
    is_certain = presence in (ProxyPresence.ABSENT, ProxyPresence.PRESENT)
    about_pod = ProxyReading(policies, by, _WHY[presence], _SETTING, Sidecars.ACTUAL, is_certain)
    if by is None or not stance.excluded:
        return (about_pod,)
    ports = stance.excluded
    why = f"{EXCLUDED_INBOUND_PORTS} keeps connections to port {', '.join(map(str, ports))} from its proxy"
    return about_pod, ProxyReading(policies, by, why, _SETTING, Sidecars.ACTUAL, certain=False, ports=ports)


@dataclass(frozen=True, slots=True)
class ProxiedCallers:
    """Derives that a pod without a proxy has no identity. All other callers keep theirs."""

    world: World
    depends_on: ClassVar[None] = None  # callers are compared by their identities, whoever has them

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return an absent identity for a pod that has no proxy to prove its own with."""
        key = values.get(SOURCE_WORKLOAD)
        caller = self.world.workloads.get(key) if isinstance(key, str) else None
        return {} if caller is None or not caller.is_pod or has_identity(self.world, caller) else {IDENTITY: None}
