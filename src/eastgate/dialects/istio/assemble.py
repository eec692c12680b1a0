"""Assemble the policies at a proxy of Istio to its layer.

Istio's own proxies judge HTTP and bytes by different chains. Ours have one, in which what they cannot see is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster import Workload
from eastgate.dialects.base import Scene
from eastgate.dialects.istio.chains import ChainParts, build_chain
from eastgate.dialects.istio.claims import NoClaims, is_claim
from eastgate.dialects.istio.derived import HttpForms
from eastgate.dialects.istio.lowering import View
from eastgate.dialects.istio.mesh_config import MeshConfig, mesh_settings
from eastgate.dialects.istio.model import IstioAuthorizationPolicy, IstioPolicy
from eastgate.dialects.istio.provenance import AT_GATEWAY, AT_SIDECAR, IstioPlaneReading, Surface
from eastgate.ir import Attachment, Chain, Derivation, Is, Layer, OneOf, Placement, SelectorCase
from eastgate.ir.attributes import APPLICATION
from eastgate.records import dataclass
from eastgate.settings import DataPlane

__all__ = ["Stance", "layers", "stance_of"]

_HTTP = Is(APPLICATION, OneOf(frozenset({"http"})))


@dataclass(frozen=True, slots=True)
class Stance:
    """What the layers of a workload depend on beside its policies."""

    mesh: MeshConfig


def stance_of(_workload: Workload, attached: Sequence[Attachment[IstioPolicy]], scene: Scene) -> Stance | None:
    """Return the stance of a workload; None where no policy is about it."""
    return Stance(mesh_settings(scene.settings, scene.world)) if attached else None


def layers(attached: Sequence[Attachment[IstioPolicy]], scene: Scene) -> list[Layer]:
    """Return the layers of a workload, or of a Gateway: it has no stance."""
    stance = scene.stance
    policies = list(dict.fromkeys(attachment.policy for attachment in attached))
    if isinstance(stance, Stance):
        return _sidecar(AT_SIDECAR, policies, stance.mesh, scene)
    return _sidecar(AT_GATEWAY, policies, mesh_settings(scene.settings, scene.world), scene)


def _sidecar(at: Placement, policies: Sequence[IstioPolicy], mesh: MeshConfig, scene: Scene) -> list[Layer]:
    """Return the layer of a proxy beside a workload, or of a gateway."""
    authorization = [policy for policy in policies if isinstance(policy, IstioAuthorizationPolicy)]
    if at is AT_SIDECAR:
        authorization = [policy for policy in authorization if not policy.refs]
    if not authorization:
        return []
    parts = ChainParts(readings=(IstioPlaneReading(scene.settings.data_plane, mesh.path_normalization),))
    if scene.settings.data_plane is DataPlane.EASTGATE:
        chain = build_chain(authorization, View(Surface.ANY, mesh), parts, scoped=False)
        return [Layer(at, chain, derivations=_derivations([chain], mesh, scene))]
    http, octets = (build_chain(authorization, View(each, mesh), parts) for each in (Surface.HTTP, Surface.BYTES))
    return [Layer(at, octets, (SelectorCase(_HTTP, http),), _derivations([http, octets], mesh, scene))]


def _derivations(chains: Sequence[Chain], mesh: MeshConfig, scene: Scene) -> tuple[Derivation, ...]:
    """Return what works out the attributes that chains look at, and that no request has by itself."""
    claims = frozenset(attribute for chain in chains for attribute in chain.looks_at if is_claim(attribute))
    forms = [HttpForms(mesh.path_normalization)] if scene.settings.data_plane is DataPlane.NATIVE else []
    return (*forms, *([NoClaims(claims)] if claims else []))
