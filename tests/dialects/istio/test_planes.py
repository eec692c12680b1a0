"""The proxy that serves a pod, and the waypoint of its traffic."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from eastgate.cluster import (
    AllowedRoutes,
    Gateway,
    Listener,
    Namespace,
    Pod,
    RoutesFrom,
    Selector,
    Service,
    World,
    WorldObject,
)
from eastgate.dialects.istio.model import PolicyTarget
from eastgate.dialects.istio.planes import ServingPlane, plane_of, refusal_of
from eastgate.dialects.istio.settings import IstioDataPlane
from eastgate.dialects.istio.waypoints import Binding, Waypoint, bindings_of, is_bound, seen_by, seen_from
from eastgate.dialects.istio.written import IstioRule
from eastgate.dialects.istio.ztunnel import lower_rule
from eastgate.ir import ALWAYS, NEVER, Is, OneOf, mentions
from eastgate.ir.attributes import DESTINATION_ADDRESS, PORT
from tests.dialects.istio.planes_building import rule, tokens_policy

MODE, INJECT, INJECTION, REV = (
    "istio.io/dataplane-mode",
    "sidecar.istio.io/inject",
    "istio-injection",
    "istio.io/rev",
)
USE, USE_NAMESPACE, FOR = "istio.io/use-waypoint", "istio.io/use-waypoint-namespace", "istio.io/waypoint-for"

PLANES: list[tuple[dict[str, str], dict[str, str], ServingPlane]] = [
    ({}, {}, ServingPlane.UNKNOWN),
    ({INJECTION: "enabled"}, {}, ServingPlane.SIDECAR),
    ({INJECTION: "enabled"}, {INJECT: "false"}, ServingPlane.NONE),
    ({INJECTION: "disabled"}, {INJECT: "true"}, ServingPlane.NONE),
    ({INJECTION: "disabled"}, {REV: "canary"}, ServingPlane.NONE),
    ({INJECTION: "enabled"}, {INJECT: "no"}, ServingPlane.NONE),
    ({INJECTION: "enabled"}, {INJECT: "False"}, ServingPlane.NONE),
    ({INJECTION: "enabled"}, {INJECT: "disabled"}, ServingPlane.NONE),
    ({INJECTION: "enabled"}, {INJECT: ""}, ServingPlane.SIDECAR),
    ({INJECTION: "enabled"}, {INJECT: "Yes"}, ServingPlane.SIDECAR),
    ({}, {INJECT: "yes"}, ServingPlane.UNKNOWN),
    ({REV: "canary"}, {INJECT: "off"}, ServingPlane.NONE),
    ({REV: "canary"}, {}, ServingPlane.SIDECAR),
    ({REV: "canary"}, {INJECT: "false"}, ServingPlane.NONE),
    ({REV: "canary", INJECTION: "disabled"}, {}, ServingPlane.NONE),
    ({}, {INJECT: "true"}, ServingPlane.SIDECAR),
    ({}, {REV: "canary"}, ServingPlane.SIDECAR),
    ({}, {REV: "canary", INJECT: "false"}, ServingPlane.NONE),
    ({MODE: "ambient"}, {}, ServingPlane.ZTUNNEL),
    ({MODE: "ambient"}, {MODE: "none"}, ServingPlane.NONE),
    ({}, {MODE: "ambient"}, ServingPlane.ZTUNNEL),
    ({MODE: "none"}, {MODE: "ambient"}, ServingPlane.ZTUNNEL),
    ({MODE: "ambient"}, {INJECT: "true"}, ServingPlane.SIDECAR),
    ({MODE: "ambient", INJECTION: "enabled"}, {}, ServingPlane.SIDECAR),
    ({}, {"gateway.networking.k8s.io/gateway-name": "waypoint"}, ServingPlane.SIDECAR),
]


def world(*objects: WorldObject, namespace: Mapping[str, str] | None = None, pod: Pod | None = None) -> World:
    return World.of((Namespace("app", namespace or {}), pod or Pod("app", "web", {"app": "web"}), *objects))


@pytest.mark.parametrize(("namespace", "labels", "plane"), PLANES, ids=[f"{ns} {pod}" for ns, pod, _ in PLANES])
def test_labels_decide_which_proxy_a_pod_has(
    namespace: dict[str, str], labels: dict[str, str], plane: ServingPlane
) -> None:
    declared = world(namespace=namespace, pod=Pod("app", "web", labels))
    assert plane_of(declared.workloads["app/web"], declared, IstioDataPlane.AUTO) is plane


SILENT = Pod("app", "web", {"app": "web"})
UNKNOWN: list[tuple[str, list[WorldObject], ServingPlane]] = [
    ("its namespace is in no manifest", [], ServingPlane.UNKNOWN),
    ("its namespace is in no manifest, others are", [Namespace("b", {INJECTION: "enabled"})], ServingPlane.UNKNOWN),
    ("no namespace has a label", [Namespace("app"), Namespace("b")], ServingPlane.UNKNOWN),
    (
        "other namespaces refuse proxies",
        [Namespace("app"), Namespace("b", {INJECTION: "disabled"})],
        ServingPlane.UNKNOWN,
    ),
    ("another namespace is injected", [Namespace("app"), Namespace("b", {INJECTION: "enabled"})], ServingPlane.NONE),
    ("another namespace is ambient", [Namespace("app"), Namespace("b", {MODE: "ambient"})], ServingPlane.NONE),
    ("another pod asks for one", [Namespace("app"), Pod("b", "x", {INJECT: "true"})], ServingPlane.NONE),
    ("another pod asks by annotation", [Namespace("app"), Pod("b", "x", {}, {INJECT: "true"})], ServingPlane.NONE),
    ("another pod refuses one", [Namespace("app"), Pod("b", "x", {INJECT: "false"})], ServingPlane.UNKNOWN),
    (
        "the pod of a gateway asks for one",
        [Namespace("app"), Pod("b", "x", {INJECT: "true", "istio": "ingressgateway"})],
        ServingPlane.UNKNOWN,
    ),
    ("its namespace refuses proxies", [Namespace("app", {INJECTION: "disabled"})], ServingPlane.NONE),
]


@pytest.mark.parametrize(("beside", "plane"), [case[1:] for case in UNKNOWN], ids=[case[0] for case in UNKNOWN])
def test_without_a_label_the_proxy_is_unknown_unless_others_have_labels(
    beside: list[WorldObject], plane: ServingPlane
) -> None:
    declared = World.of([SILENT, *beside])
    assert plane_of(declared.workloads["app/web"], declared, IstioDataPlane.AUTO) is plane


@pytest.mark.parametrize(
    ("pod", "plane"),
    [
        (Pod("app", "web", host_network=True), ServingPlane.NONE),
        (Pod("app", "web", annotations={INJECT: "false"}), ServingPlane.NONE),
        (Pod("app", "web", annotations={INJECT: "No"}), ServingPlane.NONE),
        (Pod("app", "web", mesh_proxies=("istio-proxy",)), ServingPlane.SIDECAR),
        (Pod("app", "web", {INJECT: "true"}, annotations={INJECT: "false"}), ServingPlane.SIDECAR),
        (Pod("app", "web", {INJECT: "false"}, annotations={"sidecar.istio.io/status": "{}"}), ServingPlane.SIDECAR),
        (Pod("app", "web", {"app": "ztunnel", MODE: "none"}, mesh_proxies=("istio-proxy",)), ServingPlane.NONE),
        (Pod("app", "web", {"app": "web", MODE: "none"}, mesh_proxies=("istio-proxy",)), ServingPlane.SIDECAR),
    ],
    ids=["host network", "annotation", "in words", "container", "label counts more", "injected", "ztunnel", "by hand"],
)
def test_more_than_labels_counts(pod: Pod, plane: ServingPlane) -> None:
    declared = world(namespace={INJECTION: "enabled"}, pod=pod)
    assert plane_of(declared.workloads["app/web"], declared, IstioDataPlane.AUTO) is plane


@pytest.mark.parametrize(
    ("data_plane", "plane"),
    [
        (IstioDataPlane.SIDECAR, ServingPlane.SIDECAR),
        (IstioDataPlane.AMBIENT, ServingPlane.ZTUNNEL),
        (IstioDataPlane.NONE, ServingPlane.NONE),
    ],
    ids=str,
)
def test_the_setting_may_decide_for_all_pods(data_plane: IstioDataPlane, plane: ServingPlane) -> None:
    declared = world(pod=Pod("app", "web", {MODE: "none", INJECT: "false"}))
    assert plane_of(declared.workloads["app/web"], declared, data_plane) is plane


REFUSALS: list[tuple[dict[str, str], Pod, str | None]] = [
    ({INJECTION: "enabled"}, Pod("app", "web", host_network=True), "hostNetwork pods have no proxy"),
    ({INJECTION: "enabled"}, Pod("app", "web", {INJECT: "false"}), f'its label {INJECT}: "false" refuses a proxy'),
    (
        {INJECTION: "enabled"},
        Pod("app", "web", annotations={INJECT: "false"}),
        f'its annotation {INJECT}: "false" refuses a proxy',
    ),
    ({MODE: "ambient"}, Pod("app", "web", {MODE: "none"}), f"its label {MODE}: none refuses a proxy"),
    (
        {INJECTION: "disabled"},
        Pod("app", "web", {INJECT: "true"}),
        f"the label {INJECTION}: disabled of its namespace refuses a proxy",
    ),
    ({}, Pod("app", "web"), None),
]


@pytest.mark.parametrize(("namespace", "pod", "refusal"), REFUSALS, ids=[str(case[2]) for case in REFUSALS])
def test_the_text_names_the_reason_for_a_refused_proxy(
    namespace: dict[str, str], pod: Pod, refusal: str | None
) -> None:
    declared = world(Namespace("b", {INJECTION: "enabled"}), namespace=namespace, pod=pod)
    workload = declared.workloads["app/web"]
    assert plane_of(workload, declared, IstioDataPlane.AUTO) is ServingPlane.NONE
    assert refusal_of(workload, declared) == refusal


# Waypoints

SERVICE = Service("app", "web", {"app": "web"})


def gateway(namespace: str = "app", labels: Mapping[str, str] | None = None, **allowed: object) -> Gateway:
    routes = AllowedRoutes(**allowed)  # type: ignore[arg-type]
    return Gateway(
        namespace,
        "waypoint",
        (Listener("mesh", 15008, "HBONE", allowed_routes=routes),),
        "istio-waypoint",
        labels or {},
    )


def waypoint(namespace: str = "app", account: str = "waypoint", address: str | None = None) -> Waypoint:
    return Waypoint(namespace, "waypoint", f"spiffe://cluster.local/ns/{namespace}/sa/{account}", address)


def bound(declared: World) -> tuple[Binding, ...]:
    return bindings_of(declared.workloads["app/web"], declared, "cluster.local")


BOUND = (Binding("app/web", waypoint()),)
HEADLESS = Service("app", "web", {"app": "web"}, labels={USE: "waypoint"}, is_headless=True)
EDGE = Gateway("edge", "in", (), "istio")
EDGE_ID = frozenset({"spiffe://cluster.local/ns/edge/sa/in-istio"})
LABELLED = Service("app", "web", {"app": "web"}, labels={USE: "waypoint"})
CASES: list[tuple[str, World, tuple[Binding, ...]]] = [
    ("nobody says so", world(SERVICE, gateway()), ()),
    ("the Service", world(LABELLED, gateway()), BOUND),
    ("the namespace", world(SERVICE, gateway(), namespace={USE: "waypoint"}), BOUND),
    (
        "the Service is left out",
        world(Service("app", "web", {"app": "web"}, labels={USE: "none"}), gateway(), namespace={USE: "waypoint"}),
        (),
    ),
    ("no such waypoint", world(LABELLED), ()),
    ("a headless Service", world(HEADLESS, gateway()), ()),
    (
        "a headless Service, for all",
        world(HEADLESS, gateway(labels={FOR: "all"}), namespace={USE: "waypoint"}),
        (Binding(None, waypoint(), headless=frozenset({"app/web"})),),
    ),
    ("a headless Service, and a gateway that goes past it", world(HEADLESS, gateway(), EDGE), ()),
    (
        "a headless Service, and a gateway that is led there",
        world(HEADLESS, gateway(), EDGE, namespace={"istio.io/ingress-use-waypoint": "true"}),
        (Binding("app/web", waypoint(), only=EDGE_ID),),
    ),
    (
        "the Service's own does not exist",
        world(Service("app", "web", {"app": "web"}, labels={USE: "x"}), gateway(), namespace={USE: "waypoint"}),
        (),
    ),
    ("for workloads alone", world(LABELLED, gateway(labels={FOR: "workload"})), ()),
    ("for nothing", world(LABELLED, gateway(labels={FOR: "none"}), namespace={USE: "waypoint"}), ()),
    (
        "for all, of the namespace",
        world(SERVICE, gateway(labels={FOR: "all"}), namespace={USE: "waypoint"}),
        (*BOUND, Binding(None, waypoint())),
    ),
    (
        "the pod, for workloads",
        world(SERVICE, gateway(labels={FOR: "workload"}), pod=Pod("app", "web", {"app": "web", USE: "waypoint"})),
        (Binding(None, waypoint()),),
    ),
    ("the pod, for Services", world(SERVICE, gateway(), pod=Pod("app", "web", {"app": "web", USE: "waypoint"})), ()),
    (
        "another namespace, not allowed",
        world(SERVICE, gateway("infra"), namespace={USE: "waypoint", USE_NAMESPACE: "infra"}),
        (),
    ),
    (
        "another namespace, all allowed",
        world(
            SERVICE, gateway("infra", namespaces=RoutesFrom.ALL), namespace={USE: "waypoint", USE_NAMESPACE: "infra"}
        ),
        (Binding("app/web", waypoint("infra")),),
    ),
    (
        "another namespace, selected",
        world(
            SERVICE,
            gateway("infra", namespaces=RoutesFrom.SELECTOR, selector=Selector.of({"team": "a"})),
            namespace={USE: "waypoint", USE_NAMESPACE: "infra", "team": "a"},
        ),
        (Binding("app/web", waypoint("infra")),),
    ),
    (
        "another namespace, not selected",
        world(
            SERVICE,
            gateway("infra", namespaces=RoutesFrom.SELECTOR, selector=Selector.of({"team": "b"})),
            namespace={USE: "waypoint", USE_NAMESPACE: "infra", "team": "a"},
        ),
        (),
    ),
    (
        "the waypoint's own Service",
        world(
            Service("app", "web", {"app": "web"}, labels={"gateway.istio.io/managed": "istio.io-mesh-controller"}),
            gateway(),
            namespace={USE: "waypoint"},
        ),
        (),
    ),
    (
        "its pod is declared",
        world(
            LABELLED,
            gateway(),
            Pod("app", "w", {"gateway.networking.k8s.io/gateway-name": "waypoint"}, {}, "custom", (), ("10.0.0.9",)),
        ),
        (Binding("app/web", waypoint(account="custom", address="10.0.0.9")),),
    ),
]


@pytest.mark.parametrize(("declared", "bindings"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_labels_bind_traffic_to_a_waypoint(declared: World, bindings: tuple[Binding, ...]) -> None:
    assert bound(declared) == bindings


GATEWAY_API = "gateway.networking.k8s.io"
REFS = [
    (PolicyTarget("", "Service", "web"), True, False),
    (PolicyTarget("", "Service", "other"), False, False),
    (PolicyTarget(GATEWAY_API, "Gateway", "waypoint"), True, True),
    (PolicyTarget(GATEWAY_API, "Gateway", "other"), False, False),
    (PolicyTarget(GATEWAY_API, "GatewayClass", "istio-waypoint"), False, False),  # not in the root namespace
    (PolicyTarget("networking.istio.io", "ServiceEntry", "web"), False, False),
]


@pytest.mark.parametrize(("ref", "to_service", "to_pod"), REFS, ids=[str(case[0]) for case in REFS])
def test_policies_are_bound_by_their_targets(ref: PolicyTarget, to_service: bool, to_pod: bool) -> None:
    policy = tokens_policy("jwt", refs=(ref,))
    assert is_bound(policy, Binding("app/web", waypoint())) is to_service
    assert is_bound(policy, Binding(None, waypoint())) is to_pod


def test_a_policy_without_targets_is_not_for_waypoints() -> None:
    assert not is_bound(tokens_policy("jwt"), Binding("app/web", waypoint()))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (rule({"principals": ["cluster.local/ns/app/sa/waypoint"]}), ALWAYS),
        (rule({"principals": ["cluster.local/ns/a/sa/x"]}), NEVER),
        (rule({"namespaces": ["app"]}), ALWAYS),
        (rule({"notNamespaces": ["app"]}), NEVER),
    ],
    ids=["its principal", "another's", "its namespace", "not its namespace"],
)
def test_behind_a_waypoint_its_identity_counts(written: IstioRule, expected: object) -> None:
    assert seen_from(waypoint(), lower_rule(written, "app", denies=True).when) == expected


def test_behind_a_waypoint_its_address_counts() -> None:
    lowered = lower_rule(rule({"ipBlocks": ["10.0.0.0/24"]}), "app", denies=True).when
    assert seen_from(waypoint(address="10.0.0.9"), lowered) == ALWAYS
    assert seen_from(waypoint(address="10.9.0.9"), lowered) == NEVER
    assert seen_from(waypoint(), lowered) not in (ALWAYS, NEVER, lowered)


def test_a_waypoint_sees_the_port_and_the_address_of_the_service() -> None:
    binding = Binding("app/web", waypoint(), ((80, (8080,)), (81, (9000,)), (82, (9000,))))
    at_port, at_address = Is(PORT, OneOf(frozenset({80}))), Is(DESTINATION_ADDRESS, OneOf(frozenset({"10.0.0.1"})))
    assert seen_by(binding, at_port) == Is(PORT, OneOf(frozenset({8080})))
    assert seen_by(binding, Is(PORT, OneOf(frozenset({81, 82})))) == Is(PORT, OneOf(frozenset({9000})))
    assert seen_by(binding, Is(PORT, OneOf(frozenset({8080})))) == Is(PORT, OneOf(frozenset()))
    assert mentions(seen_by(binding, Is(PORT, OneOf(frozenset({81}))))) > {PORT}  # it is unknown which of two it is
    assert DESTINATION_ADDRESS not in mentions(seen_by(binding, at_address))
    assert seen_by(Binding(None, waypoint()), at_port) == at_port
