"""The knowledge that proxies in pods have of each other, and decisions at undeclared ports."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.authority.authority import Authority, programs_of
from eastgate.control.capturing import captured_outbound
from eastgate.envoy.config.capture import CapturedAccount, CapturedService
from eastgate.envoy.plan import plan_port
from eastgate.envoy.plan.ports import named_ports, plan_any_port
from eastgate.ir import AllowAny, Between, Chain, Is, Layer, Origin, Placement, Rule, Site
from eastgate.ir.attributes import PORT
from eastgate.settings import Settings
from tests.controller.injection.plane import pod_sites
from tests.faults.worlds import allow, deny, reading, sa

Plain = dict[str, Any]


def pod(name: str, address: str | None, *, sidecar: bool = True, account: str = "server", **annotations: str) -> Plain:
    metadata = {
        "name": name,
        "namespace": "shop",
        "labels": {"app": "server"} | ({"eastgate.dev/proxy": "sidecar"} if sidecar else {}),
        "annotations": {f"eastgate.dev/{key.replace('_', '-')}": text for key, text in annotations.items()},
    }
    container = {"name": "main", "image": "main", "ports": [{"name": "http", "containerPort": 8080}]}
    status = {"podIP": address, "podIPs": [{"ip": address}]} if address else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"serviceAccountName": account, "containers": [container]},
        "status": status,
    }


def service(*addresses: str, name: str = "server") -> Plain:
    ips = {"clusterIP": addresses[0], "clusterIPs": list(addresses)} if addresses else {}
    spec = {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": "http"}, {"port": 81}], **ips}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def known(*manifests: Plain) -> Any:
    authority = reading(*manifests)(Settings())
    return captured_outbound(authority.world, dict(pod_sites(authority.world)), authority.settings)


def test_a_service_whose_pods_all_have_sidecars_is_called_with_mtls_for_their_accounts() -> None:
    outbound = known(service("10.0.0.1", "fd00::1"), pod("a", "10.1.0.1"), pod("b", "10.1.0.2", account="other"))
    identities = frozenset({sa("server"), sa("other")})
    assert outbound.services == tuple(
        CapturedService("shop/server", ("10.0.0.1", "fd00::1"), port, identities) for port in (80, 81)
    )
    assert outbound.accounts == (
        CapturedAccount(sa("other"), ("10.1.0.2",), (15021,)),
        CapturedAccount(sa("server"), ("10.1.0.1",), (15021,)),
    )


def test_a_pod_that_is_only_coming_changes_nothing() -> None:
    assert known(service("10.0.0.1"), pod("a", "10.1.0.1"), pod("b", None, sidecar=False)).services != ()


@pytest.mark.parametrize(
    "manifests",
    [
        [service("10.0.0.1"), pod("a", "10.1.0.1"), pod("b", "10.1.0.2", sidecar=False)],
        [service("None"), pod("a", "10.1.0.1")],
        [service(), pod("a", "10.1.0.1")],
        [service("10.0.0.1")],
        [service("10.0.0.1"), pod("a", None)],
    ],
    ids=["mixed", "headless", "no-address", "no-pod", "no-pod-yet"],
)
def test_other_services_are_left_alone(manifests: list[Plain]) -> None:
    assert known(*manifests).services == ()


def test_a_port_that_a_pod_does_not_redirect_is_called_in_clear_text() -> None:
    outbound = known(service("10.0.0.1"), pod("a", "10.1.0.1", exclude_inbound_ports="8080"))
    assert [captured.port for captured in outbound.services] == [81]
    assert outbound.accounts == (CapturedAccount(sa("server"), ("10.1.0.1",), (8080, 15021)),)


GATEWAY = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "Gateway",
    "metadata": {"name": "entry", "namespace": "shop"},
    "spec": {"gatewayClassName": "eastgate", "listeners": [{"name": "http", "port": 8080, "protocol": "HTTP"}]},
}


def gateway_pod(name: str, address: str, *, account: str = "entry", labelled: bool = True) -> Plain:
    made = pod(name, address, sidecar=False, account=account)
    if labelled:
        made["metadata"]["labels"]["gateway.networking.k8s.io/gateway-name"] = "entry"
    return made


def known_with_gateway(*manifests: Plain) -> Any:
    authority = reading(GATEWAY, *manifests)(Settings())
    sites = dict(pod_sites(authority.world))
    return captured_outbound(authority.world, sites, authority.settings, {"shop/entry": [8080]})


def test_a_gateway_is_called_with_mtls_at_its_ports_without_tls() -> None:
    outbound = known_with_gateway(
        service("10.0.0.1"), gateway_pod("a", "10.1.0.1"), gateway_pod("b", "10.1.0.2"), pod("c", "10.1.0.3")
    )
    assert outbound.services == ()  # the Service has another pod too
    outbound = known_with_gateway(service("10.0.0.1"), gateway_pod("a", "10.1.0.1"), gateway_pod("b", "10.1.0.2"))
    identities = frozenset({sa("entry")})
    assert outbound.services == (
        CapturedService("shop/server", ("10.0.0.1",), 80, identities),
        CapturedService("shop/server/pods", ("10.1.0.1", "10.1.0.2"), 8080, identities),
    )
    assert outbound.accounts == ()


@pytest.mark.parametrize(
    "other",
    [gateway_pod("b", "10.1.0.2", account="server"), gateway_pod("b", "10.1.0.2", labelled=False)],
    ids=["other-account", "no-label"],
)
def test_another_pod_in_the_service_of_a_gateway_keeps_it_in_plain_text(other: Plain) -> None:
    assert known_with_gateway(service("10.0.0.1"), gateway_pod("a", "10.1.0.1"), other).services == ()


def layers_of(*policies: Plain) -> tuple[Authority, tuple[Layer, ...]]:
    authority = reading(pod("a", "10.1.0.1"), *policies)(Settings())
    return authority, tuple(programs_of(authority).program("shop/a").layers)


def test_all_ports_that_no_policy_names_share_one_plan() -> None:
    settings = Settings()
    _, layers = layers_of(allow("web", "web"), deny("not-here", "web", ports=[1, 2, 9999]))
    assert named_ports(layers) == frozenset({1, 2, 9999})
    plan = plan_any_port(layers, 0, settings, [sa("web")])
    assert plan.port == 0
    for port in (3, 8080, 65535):
        assert plan.connect == plan_port(layers, port, settings, [sa("web")]).connect
    assert plan.connect != plan_port(layers, 9999, settings, [sa("web")]).connect


def test_where_policies_tell_ports_apart_in_another_way_the_rest_is_closed() -> None:
    ranged = AllowAny("ranged", (Rule(Is(PORT, Between(100, 200)), Origin(None, 0)),))
    layer = Layer(Placement(Site.WORKLOAD, "network"), Chain((ranged,)))
    plan = plan_any_port([layer], 0, Settings(), [sa("web")])
    assert plan.refused is not None
    assert plan.port == 0
