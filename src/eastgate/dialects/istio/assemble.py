"""Assemble the policies at a proxy of Istio to its layers.

Istio's own proxies judge HTTP and bytes by different chains. Ours have one, in which what they cannot see is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster import GATEWAY_GROUP, GATEWAY_NAME_LABEL, Workload
from eastgate.dialects.base import Scene
from eastgate.dialects.istio.ambient import addressed_by, ztunnel_layer
from eastgate.dialects.istio.authentications import MtlsMode, PeerAuthentication, RequestAuthentication
from eastgate.dialects.istio.chains import ChainParts, build_chain
from eastgate.dialects.istio.claims import NoClaims, is_claim
from eastgate.dialects.istio.derived import DestinationAddress, HttpForms
from eastgate.dialects.istio.lowering import View
from eastgate.dialects.istio.mesh_config import MeshConfig, mesh_settings
from eastgate.dialects.istio.model import IstioAuthorizationPolicy, IstioPolicy
from eastgate.dialects.istio.mtls import plaintext_stage, ports_by_mode, rewrite_chain, without_identity
from eastgate.dialects.istio.peer_modes import Mode, peer_modes
from eastgate.dialects.istio.planes import Plane, plane_of
from eastgate.dialects.istio.provenance import AT_GATEWAY, AT_SIDECAR, AT_WAYPOINT, IstioPlaneReading, Surface
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.dialects.istio.token_stages import token_stages
from eastgate.dialects.istio.tokens import Tokens
from eastgate.dialects.istio.waypoints import Binding, bindings_of, is_bound, is_waypoint_pod
from eastgate.ir import (
    ALWAYS,
    Attachment,
    Chain,
    Derivation,
    Is,
    Layer,
    OneOf,
    Placement,
    Predicate,
    SelectorCase,
    all_of,
)
from eastgate.ir.attributes import APPLICATION, DESTINATION_ADDRESS, PORT
from eastgate.records import dataclass
from eastgate.settings import DataPlane

__all__ = ["Stance", "layers", "stance_of"]

_HTTP = Is(APPLICATION, OneOf(frozenset({"http"})))
_NO_DEMAND = Mode(MtlsMode.PERMISSIVE)


@dataclass(frozen=True, slots=True)
class Stance:
    """What the layers of a workload depend on beside its policies. `gateway`: it is a pod of the Gateway of that name.

    `address` is that of the workload, where a policy may ask for it.
    """

    mesh: MeshConfig
    plane: Plane
    bindings: tuple[Binding, ...] = ()
    gateway: str | None = None
    is_waypoint: bool = False
    address: str | None = None


def stance_of(workload: Workload, attached: Sequence[Attachment[IstioPolicy]], scene: Scene) -> Stance | None:
    """Return the stance of a workload; None where no policy is about it."""
    if not attached:
        return None
    mesh = mesh_settings(scene.settings, scene.world)
    plane = plane_of(workload, scene.world, scene.settings.section(IstioSettings).istio_data_plane)
    gateway = workload.labels.get(GATEWAY_NAME_LABEL)
    asked = any(_asks_for_destination(attachment.policy) for attachment in attached)
    return Stance(
        mesh,
        plane,
        bindings_of(workload, scene.world, mesh.trust_domain) if plane is Plane.ZTUNNEL else (),
        gateway,
        gateway is not None and is_waypoint_pod(workload, scene.world),
        scene.world.address_of(workload) if asked else None,
    )


def _asks_for_destination(policy: IstioPolicy) -> bool:
    rules = policy.rules if isinstance(policy, IstioAuthorizationPolicy) else ()
    return any(when.key == "destination.ip" for rule in rules for when in rule.conditions)


def layers(attached: Sequence[Attachment[IstioPolicy]], scene: Scene) -> list[Layer]:
    """Return the layers of a workload, or of a Gateway: it has no stance."""
    policies = list(dict.fromkeys(attachment.policy for attachment in attached))
    stance = scene.stance
    if not isinstance(stance, Stance):
        proxy = _Proxy(mesh_settings(scene.settings, scene.world), scene)
        return list(proxy.layers(AT_GATEWAY, policies, ()))
    proxy = _Proxy(stance.mesh, scene, stance.address)
    plane = stance.plane
    if plane is Plane.NONE and proxy.is_ours:
        plane = Plane.SIDECAR  # ours is before every workload
    match plane:
        case Plane.NONE:
            return []
        case Plane.SIDECAR:
            chosen = [policy for policy in policies if _is_at_sidecar(policy, stance)]
            return list(proxy.layers(AT_SIDECAR, chosen, [each for each in policies if stance.gateway is None]))
        case Plane.ZTUNNEL:
            return list(proxy.ambient_layers(policies, stance.bindings))


def _is_at_sidecar(policy: IstioPolicy, stance: Stance) -> bool:
    """Return whether the proxy of a workload enforces a policy. That of a Gateway enforces those which target it."""
    if not policy.refs:
        return not stance.is_waypoint
    names = {ref.name for ref in policy.refs if (ref.group, ref.kind) == (GATEWAY_GROUP, "Gateway")}
    return stance.gateway in names


class _Proxy:
    """Builds the layers of one proxy. `is_ours`: it is no proxy of Istio."""

    def __init__(self, mesh: MeshConfig, scene: Scene, address: str | None = None) -> None:
        self.mesh = mesh
        self.scene = scene
        self.address = address
        self.is_ours = scene.settings.data_plane is DataPlane.EASTGATE
        self.readings = (IstioPlaneReading(scene.settings.data_plane, mesh.path_normalization),)

    @property
    def root_namespace(self) -> str:
        """Return the root namespace."""
        return self.scene.settings.section(IstioSettings).root_namespace

    def layers(self, at: Placement, policies: Sequence[IstioPolicy], peers: Sequence[IstioPolicy]) -> Iterator[Layer]:
        """Yield the layer of a sidecar or a gateway; none where nothing restricts it. `peers` may demand mTLS."""
        authentications = [each for each in peers if isinstance(each, PeerAuthentication) and not each.audit]
        modes = peer_modes(authentications, self.root_namespace)
        cases = [
            case for mode, ports in ports_by_mode(modes) for case in self._cases(policies, mode, Is(PORT, OneOf(ports)))
        ]
        cases += self._cases(policies, modes.others, ALWAYS)
        if any(case.chain.stages for case in cases):
            yield self._layer(at, cases, policies)

    def ambient_layers(self, policies: Sequence[IstioPolicy], bindings: Sequence[Binding]) -> Iterator[Layer]:
        """Yield the layer of waypoints, and that of ztunnel; none where nothing restricts them."""
        for binding in bindings:
            bound = [policy for policy in policies if is_bound(policy, binding)]
            cases = self._cases(bound, _NO_DEMAND, addressed_by(binding))
            if any(case.chain.stages for case in cases):
                yield self._layer(AT_WAYPOINT, [*cases, SelectorCase(ALWAYS, Chain(()))], bound)
        layer = ztunnel_layer(policies, bindings, self.root_namespace)
        if layer is not None:
            yield self._layer(layer.at, [*layer.cases, SelectorCase(ALWAYS, layer.otherwise)], ())

    def _layer(self, at: Placement, cases: Sequence[SelectorCase], policies: Sequence[IstioPolicy]) -> Layer:
        *others, last = cases
        chains = [case.chain for case in cases]
        return Layer(at, last.chain, tuple(others), tuple(self._derivations(chains, policies)))

    def _cases(self, policies: Sequence[IstioPolicy], mode: Mode, when: Predicate) -> list[SelectorCase]:
        """Return the cases of some traffic: HTTP, and then all other; for our proxies one for both."""
        authorization = [policy for policy in policies if isinstance(policy, IstioAuthorizationPolicy)]
        parts = ChainParts(plaintext_stage(mode), tuple(token_stages(_accepting(policies))), self.readings)
        surfaces = (Surface.ANY,) if self.is_ours else (Surface.HTTP, Surface.BYTES)
        chains = [build_chain(authorization, View(each, self.mesh), parts) for each in surfaces]
        if mode.mode is MtlsMode.DISABLE:
            chains = [rewrite_chain(chain, without_identity) for chain in chains]
        if len(chains) == 1:
            return [SelectorCase(when, chains[0])]
        return [SelectorCase(all_of((when, _HTTP)), chains[0]), SelectorCase(when, chains[1])]

    def _derivations(self, chains: Sequence[Chain], policies: Sequence[IstioPolicy]) -> Iterator[Derivation]:
        """Yield what works out the attributes that chains look at, and that no request has by itself."""
        looked_at = frozenset().union(*(chain.looks_at for chain in chains))
        claims = frozenset(attribute for attribute in looked_at if is_claim(attribute))
        if not self.is_ours:
            yield HttpForms(self.mesh.path_normalization)
        accepting = _accepting(policies)
        if accepting:
            yield Tokens(tuple(accepting), claims, self.scene.keys)
        elif claims:
            yield NoClaims(claims)
        if self.address is not None and DESTINATION_ADDRESS in looked_at:
            yield DestinationAddress(self.address)


def _accepting(policies: Sequence[IstioPolicy]) -> list[RequestAuthentication]:
    return [policy for policy in policies if isinstance(policy, RequestAuthentication) and not policy.audit]
