"""Assembly of the policies at a workload or a Gateway to the layers of Istio's proxies there.

Istio's own proxies use different chains for HTTP and for bytes. Eastgate's proxies have one chain, in which attributes
that they cannot see are unknown. A sidecar has one layer. A workload with ztunnel has the layer of its waypoint, if it
has one, and the layer of ztunnel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

from eastgate.basics.records import dataclass
from eastgate.cluster import GATEWAY_NAME_LABEL, Workload, World
from eastgate.dialects.base import Scene
from eastgate.dialects.istio.chains import ChainParts, build_chain, guard_ports
from eastgate.dialects.istio.derived import DestinationAddress, HttpForms, PlainHttp, narrowed, rewrite_chain
from eastgate.dialects.istio.lowering import View
from eastgate.dialects.istio.mesh_config import MeshConfig, mesh_settings
from eastgate.dialects.istio.model import (
    IstioAuthorizationPolicy,
    IstioPolicy,
    PeerAuthentication,
    RequestAuthentication,
)
from eastgate.dialects.istio.peer_modes import peer_modes
from eastgate.dialects.istio.planes import (
    WITHOUT_PROXY,
    DirectScope,
    ServingPlane,
    WaypointScope,
    is_gateway_pod,
    plane_of,
    refusal_of,
    unknown_caller,
    unknown_proxy,
    without_proxy,
)
from eastgate.dialects.istio.provenance import AT_GATEWAY, AT_SIDECAR, AT_WAYPOINT, IstioPlaneReading, Surface
from eastgate.dialects.istio.settings import IstioDataPlane, IstioSettings
from eastgate.dialects.istio.token_stages import AtGateway, ByService, seen_at_gateway, token_derivations, token_stages
from eastgate.dialects.istio.waypoints import Binding, bindings_of, is_bound, is_waypoint_pod, seen_by
from eastgate.dialects.istio.ztunnel import addressed_to, through_waypoint, ztunnel_layer
from eastgate.ir import (
    ALWAYS,
    Attachment,
    Chain,
    Derivation,
    Is,
    Known,
    Layer,
    OneOf,
    PolicyRef,
    ProxyReading,
    RawRequest,
    Reading,
    SelectorCase,
)
from eastgate.ir.attributes import APPLICATION, IDENTITY, SNI, SOURCE_WORKLOAD, Attribute
from eastgate.settings import DataPlane

# Callers outside the mesh: a pod without a proxy cannot prove its identity.


@dataclass(frozen=True, slots=True)
class MeshCallers:
    """Derives that a pod without a proxy has no identity. Accounts, and callers that are not known pods, keep theirs.

    `data_plane` says which pods have a proxy. `is_one_mesh`: it is unknown whether the workload has a proxy. It has one
    only if all callers with an unknown proxy have one. Before a workload that has a proxy, such a caller may have none.
    """

    world: World
    data_plane: IstioDataPlane
    is_one_mesh: bool = False
    depends_on: ClassVar[None] = None  # callers are compared by their identities

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return an absent identity for a pod outside the mesh."""
        return {IDENTITY: None} if self._plane(values) is ServingPlane.NONE else {}

    def otherwise(self, values: Mapping[Attribute, Known]) -> tuple[Mapping[Attribute, Known], ProxyReading] | None:
        """Return an absent identity for a pod that may be outside the mesh."""
        if self.is_one_mesh or self._plane(values) is not ServingPlane.UNKNOWN or values.get(IDENTITY) is None:
            return None
        return {IDENTITY: None}, unknown_caller()

    def _plane(self, values: Mapping[Attribute, Known]) -> ServingPlane | None:
        """Return the proxy of the calling pod, or None if the caller is not a known pod."""
        key = values.get(SOURCE_WORKLOAD)
        caller = self.world.workloads.get(key) if isinstance(key, str) else None
        return None if caller is None else plane_of(caller, self.world, self.data_plane)


_HTTP = Is(APPLICATION, OneOf(frozenset({"http"})))

P = TypeVar("P", bound=IstioPolicy)


@dataclass(frozen=True, slots=True)
class IstioStance:
    """The inputs of a workload's layers other than its policies.

    `is_gateway`: the workload is a pod of a Gateway. `gateway` is its name, if it is a Gateway of Gateway API, and
    `is_waypoint` says whether it is a waypoint. `address` is the address of the workload, if a policy reads it.
    `refusal` says what refuses a proxy to a workload without one.
    """

    mesh: MeshConfig
    plane: ServingPlane
    bindings: tuple[Binding, ...] = ()
    is_gateway: bool = False
    gateway: str | None = None
    is_waypoint: bool = False
    address: str | None = None
    refusal: str | None = None


def stance_of(workload: Workload, attached: Sequence[Attachment[IstioPolicy]], scene: Scene) -> IstioStance:
    """Return the stance of a workload that these policies apply to."""
    mesh, world = mesh_settings(scene.settings, scene.world), scene.world
    data_plane = scene.settings.section(IstioSettings).istio_data_plane
    plane = plane_of(workload, world, data_plane)
    asked = any(_asks_for_destination(attachment.policy) for attachment in attached)
    return IstioStance(
        mesh,
        plane,
        bindings_of(
            workload,
            world,
            mesh.trust_domain,
            by_labels=data_plane is IstioDataPlane.AUTO,
            native=scene.settings.data_plane is DataPlane.NATIVE,
        )
        if plane is ServingPlane.ZTUNNEL
        else (),
        is_gateway_pod(workload, world),
        workload.labels.get(GATEWAY_NAME_LABEL),
        is_waypoint_pod(workload, world),
        world.address_of(workload) if asked else None,
        refusal_of(workload, world) if plane is ServingPlane.NONE and data_plane is IstioDataPlane.AUTO else None,
    )


def _asks_for_destination(policy: IstioPolicy) -> bool:
    rules = policy.rules if isinstance(policy, IstioAuthorizationPolicy) else ()
    return any(when.key == "destination.ip" for rule in rules for when in rule.conditions)


def layers(attached: Sequence[Attachment[IstioPolicy]], scene: Scene) -> list[Layer]:
    """Return the layers of a workload, or of a Gateway, which has no stance.

    A workload that has either a sidecar or no proxy gets the layer of a sidecar. Without a proxy nothing is denied, so
    this layer allows only requests that are allowed in both cases.
    """
    stance = scene.stance
    policies = list(dict.fromkeys(attachment.policy for attachment in attached))
    if not isinstance(stance, IstioStance):
        return _Proxies(policies, mesh_settings(scene.settings, scene.world), scene).gateway()
    proxies = _Proxies(policies, stance.mesh, scene, stance.address, is_known=stance.plane is not ServingPlane.UNKNOWN)
    match stance.plane:
        case ServingPlane.NONE if scene.settings.data_plane is DataPlane.NATIVE:
            selecting = _selecting(policies)
            choice = scene.settings.section(IstioSettings).istio_data_plane
            return (
                [Layer(WITHOUT_PROXY, Chain((), (without_proxy(selecting, choice, stance.refusal),)))]
                if selecting
                else []
            )
        case ServingPlane.ZTUNNEL:
            return proxies.ambient(stance)
        case _:
            return proxies.sidecar(stance)


class _Proxies:
    """The policies at a point, and the layers that each kind of proxy makes from them."""

    def __init__(
        self,
        policies: Sequence[IstioPolicy],
        mesh: MeshConfig,
        scene: Scene,
        address: str | None = None,
        *,
        is_known: bool = True,
    ) -> None:
        self.policies = policies
        self.is_known = is_known
        self.address = address
        self.mesh = mesh
        self.scene = scene
        self.native = scene.settings.data_plane is DataPlane.NATIVE

    def gateway(self) -> list[Layer]:
        """Return the layer of a Gateway."""
        cases, derivations = self._envoy(self.policies)
        seen = [replace(case, chain=rewrite_chain(case.chain, seen_at_gateway)) for case in cases]
        forms = [each for each in derivations if isinstance(each, HttpForms)]
        tokens = [AtGateway(each) for each in derivations if not isinstance(each, HttpForms)]
        return _restricting(Layer(AT_GATEWAY, seen[-1].chain, tuple(seen[:-1]), (*forms, *tokens)))

    def sidecar(self, stance: IstioStance) -> list[Layer]:
        """Return the layer of a proxy beside a workload, or of a pod of a Gateway."""
        if stance.gateway is None:
            policies = [policy for policy in self.policies if not policy.refs]
        else:
            policies = [policy for policy in self.policies if _is_enforced_at(policy, stance.gateway, stance)]
        cases, derivations = self._envoy(policies)
        if not stance.is_gateway:
            cases = guard_ports(cases, peer_modes(_enforced(policies, PeerAuthentication), self._root))
        if self.native and not self.is_known and (selecting := _selecting(policies)):
            cases = tuple(replace(case, chain=_with_reading(case.chain, unknown_proxy(selecting))) for case in cases)
        asks_for_name = any(SNI in case.chain.looks_at for case in cases)
        is_plain = (PlainHttp(),) if asks_for_name and self.native and not stance.is_gateway else ()
        derivations = (*self._workload, *is_plain, *derivations)
        return _restricting(Layer(AT_SIDECAR, cases[-1].chain, cases[:-1], derivations))

    def ambient(self, stance: IstioStance) -> list[Layer]:
        """Return the layers of a workload that ztunnel serves: those of its waypoints, and that of ztunnel.

        Eastgate's proxy is beside the workload instead: it sees HTTP, and the callers themselves.
        """
        waypoint = self._waypoint(stance.bindings)
        if not self.native:
            return [*waypoint, *self.sidecar(stance)]
        authorization = _all_of(self.policies, IstioAuthorizationPolicy)
        layer = ztunnel_layer(authorization, _all_of(self.policies, PeerAuthentication), stance.bindings, self._root)
        ztunnel = replace(layer, derivations=self._workload)
        says_more = bool(layer.otherwise.readings)  # about rules that ztunnel does not enforce
        return [*waypoint, *([ztunnel] if says_more else _restricting(ztunnel))]

    def _waypoint(self, bindings: Sequence[Binding]) -> list[Layer]:
        cases: list[SelectorCase] = []
        forms: dict[Derivation, None] = {}
        tokens: list[tuple[str | None, Derivation]] = []
        for binding in bindings:
            bound = [policy for policy in self.policies if is_bound(policy, binding)]
            if not bound:
                continue
            of_binding, derivations = self._envoy(bound)
            scoped = [replace(case, chain=_at_waypoint(case.chain, binding)) for case in of_binding]
            cases += narrowed(scoped, through_waypoint(binding) if self.native else addressed_to(binding))
            forms |= dict.fromkeys(each for each in derivations if isinstance(each, HttpForms))
            deriving = [each for each in derivations if not isinstance(each, HttpForms)]
            tokens += [(key, each) for key in (binding.service, *sorted(binding.headless)) for each in deriving]
        if not cases:
            return []
        derivations = (*self._workload, *forms, *([ByService(tuple(tokens))] if tokens else []))
        return [Layer(AT_WAYPOINT, Chain((), scope=DirectScope()), tuple(cases), derivations)]

    def _envoy(self, policies: Sequence[IstioPolicy]) -> tuple[tuple[SelectorCase, ...], tuple[Derivation, ...]]:
        """Return the cases of a proxy with Envoy's filters, the last for all other requests, and its derivations."""
        authorization = _all_of(policies, IstioAuthorizationPolicy)
        requests = _enforced(policies, RequestAuthentication)
        reading = IstioPlaneReading(self.scene.settings.data_plane, self.mesh.path_normalization)
        parts = ChainParts(tokens=token_stages(requests), readings=(reading,))
        if self.native:
            http, octets = (
                build_chain(authorization, View(each, self.mesh), parts) for each in (Surface.HTTP, Surface.BYTES)
            )
            cases: tuple[SelectorCase, ...] = (SelectorCase(_HTTP, http), SelectorCase(ALWAYS, octets))
            forms: tuple[Derivation, ...] = (HttpForms(self.mesh.path_normalization),)
        else:
            chain = build_chain(authorization, View(Surface.ANY, self.mesh), parts)
            cases, forms = (SelectorCase(ALWAYS, chain),), ()
        chains = [case.chain for case in cases]
        return cases, (*forms, *token_derivations(requests, chains, self.scene.keys))

    @property
    def _root(self) -> str:
        return self.scene.settings.section(IstioSettings).root_namespace

    @property
    def _workload(self) -> tuple[Derivation, ...]:
        """Return the derivations of the workload's address and, if they depend on labels, of callers' identities."""
        address = (DestinationAddress(self.address),) if self.address is not None else ()
        data_plane = self.scene.settings.section(IstioSettings).istio_data_plane
        if not self.native or data_plane not in (IstioDataPlane.AUTO, IstioDataPlane.NONE):
            return address
        return (*address, MeshCallers(self.scene.world, data_plane, is_one_mesh=not self.is_known))


def _selecting(policies: Sequence[IstioPolicy]) -> tuple[PolicyRef, ...]:
    """Return the policies that a proxy beside the workload would enforce."""
    return tuple(policy.ref for policy in policies if not policy.refs)


def _restricting(layer: Layer) -> list[Layer]:
    """Return a list with the layer, or an empty list if the layer restricts nothing."""
    return [layer] if any(chain.stages for chain in layer.chains) else []


def _with_reading(chain: Chain, reading: Reading) -> Chain:
    return replace(chain, readings=(*chain.readings, reading))


def _at_waypoint(chain: Chain, binding: Binding) -> Chain:
    seen = rewrite_chain(chain, lambda predicate: seen_by(binding, predicate))
    return replace(seen, scope=WaypointScope(str(binding.waypoint), binding.service, chain.scope))


def _is_enforced_at(policy: IstioPolicy, gateway: str, stance: IstioStance) -> bool:
    """Return whether the pods of a Gateway enforce a policy: it targets the Gateway, or selects pods by labels."""
    if policy.refs:
        return any((ref.kind, ref.name) == ("Gateway", gateway) for ref in policy.refs)
    return not stance.is_waypoint


def _all_of(policies: Iterable[IstioPolicy], kind: type[P]) -> list[P]:
    return [policy for policy in policies if isinstance(policy, kind)]


def _enforced(policies: Iterable[IstioPolicy], kind: type[P]) -> list[P]:
    return [policy for policy in _all_of(policies, kind) if not policy.audit]
