"""Gateways on a real API server: their objects, their status, and the removal of both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from eastgate.controller.gateways import (
    GatewayParameters,
    GatewayProgress,
    GatewayReconciler,
    GatewayView,
    ProxySetup,
    ReconcileResult,
)
from eastgate.reading.kubernetes import ApiError, Connection, Resource, connect
from tests.controller.gateways.manifests import reasons, world_of
from tests.programs.api_server import ApiServer, ControllerManager

pytestmark = pytest.mark.apiserver

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_LATER = datetime(2026, 1, 2, tzinfo=UTC)
_KINDS = ("serviceaccounts", "services", "deployments", "poddisruptionbudgets", "horizontalpodautoscalers")
_READ = ("namespaces", "services", "gateways.gateway.networking.k8s.io", "httproutes.gateway.networking.k8s.io")


class Cluster:
    """A namespace of an API server, and its reconciliation."""

    def __init__(self, server: ApiServer, namespace: str, gateway_class: str) -> None:
        self.server = server
        self.namespace = namespace
        self.gateway_class = gateway_class

    def apply(self, *objects: dict[str, Any]) -> None:
        self.server.apply(*objects)

    def gateway(self, *listeners: dict[str, Any], **spec: Any) -> dict[str, Any]:
        own = list(listeners) or [{"name": "http", "port": 80, "protocol": "HTTP"}]
        return {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "Gateway",
            "metadata": {"name": "gw", "namespace": self.namespace},
            "spec": {"gatewayClassName": self.gateway_class, "listeners": own, **spec},
        }

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.server.get(kind, name, "-n", self.namespace)
        return found

    def names(self) -> dict[str, list[str]]:
        """Return the names of all objects of Gateways."""
        return {
            kind: [item["metadata"]["name"] for item in self.server.get(kind, "-n", self.namespace)["items"]]
            for kind in _KINDS
        }

    def reconcile(
        self, now: datetime = _NOW, programmed: bool = True, classes: Sequence[str] = (), **connection: Any
    ) -> ReconcileResult:
        """Reconcile the namespace; `wrap` may replace its connection."""
        items = [item for kind in _READ for item in self._items(kind)]
        world, problems = world_of(items)
        assert not problems
        view = GatewayView(
            world,
            [self.server.get("gatewayclass", name) for name in (self.gateway_class, *classes)],
            [item for item in items if item["kind"] == "Gateway"],
            [item for item in items if item["kind"] == "HTTPRoute"],
            progress={f"{self.namespace}/gw": GatewayProgress(programmed, "1 of 2 proxies has it")},
        )
        return asyncio.run(self.reconcile_view(view, now, **connection))

    def _items(self, kind: str) -> Sequence[dict[str, Any]]:
        arguments = (self.namespace,) if kind == "namespaces" else ("-n", self.namespace)
        found = self.server.get(kind, *arguments)
        items: list[dict[str, Any]] = found.get("items", [found])
        return items

    async def reconcile_view(
        self, view: GatewayView, now: datetime, wrap: Callable[[Connection], Any] = lambda connection: connection
    ) -> ReconcileResult:
        setup = ProxySetup({"note": "costs $(5)"}, {"token.json": {"resources": []}})
        async with connect(self.server.kubeconfig) as connection:
            reconciler = GatewayReconciler(wrap(connection), setup, GatewayParameters("envoy:v1"), lambda: now)
            return await reconciler.reconcile(view)

    def assign_address(self, address: str = "192.0.2.7") -> None:
        """Set an address, like a load balancer."""
        change = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps(change))
        self.server.kubectl("patch", "service", "gw-eastgate", "-n", self.namespace, *patch)

    def conditions(self) -> dict[str, str]:
        return reasons(self.get("gateway", "gw")["status"]["conditions"])


def _cluster(server: ApiServer) -> Cluster:
    server.install("gateway-api")
    namespace = server.namespace("gateways")
    name = f"class-of-{namespace}"
    server.apply(_gateway_class(name, "eastgate.dev/gateway-controller"))
    return Cluster(server, namespace, name)


def _gateway_class(name: str, controller: str) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": name},
        "spec": {"controllerName": controller},
    }


@pytest.fixture
def cluster(api_server: ApiServer) -> Iterator[Cluster]:
    """Yield a namespace with its own class, which is removed at the end, since other tests would reconcile it."""
    made = _cluster(api_server)
    yield made
    made.server.kubectl("delete", "gatewayclass", made.gateway_class)


def _route(namespace: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "r", "namespace": namespace},
        "spec": {"parentRefs": [{"name": "gw"}], "rules": [{"backendRefs": [{"name": "web", "port": 80}]}], **spec},
    }


def _service(namespace: str, name: str = "web") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    }


def test_gateway_from_creation_to_programmed(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway(), _route(cluster.namespace), _service(cluster.namespace))
    result = cluster.reconcile()
    assert (result.errors, result.conflicting) == ({}, ())
    assert cluster.names() == {
        "serviceaccounts": ["default", "gw"],
        "services": ["gw-eastgate", "web"],
        "deployments": ["gw-eastgate"],
        "poddisruptionbudgets": ["gw-eastgate"],
        "horizontalpodautoscalers": [],
    }
    owner = cluster.get("gateway", "gw")["metadata"]["uid"]
    for kind, name in (("sa", "gw"), ("svc", "gw-eastgate"), ("deploy", "gw-eastgate"), ("pdb", "gw-eastgate")):
        metadata = cluster.get(kind, name)["metadata"]
        (reference,) = metadata["ownerReferences"]
        assert (reference["uid"], reference["controller"], reference["blockOwnerDeletion"]) == (owner, True, True)
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "eastgate"
        assert metadata["labels"]["eastgate.dev/gateway"] == "gw"
    assert cluster.conditions() == {"Accepted": "True/Accepted", "Programmed": "False/AddressNotAssigned"}

    cluster.assign_address()
    cluster.reconcile(programmed=False)
    assert cluster.conditions() == {"Accepted": "True/Accepted", "Programmed": "False/Pending"}
    cluster.reconcile(now=_LATER)
    status = cluster.get("gateway", "gw")["status"]
    assert status["addresses"] == [{"type": "IPAddress", "value": "192.0.2.7"}]
    times = {entry["type"]: entry["lastTransitionTime"] for entry in status["conditions"]}
    assert times == {"Accepted": "2026-01-01T00:00:00Z", "Programmed": "2026-01-02T00:00:00Z"}
    (listener,) = status["listeners"]
    assert (listener["name"], listener["attachedRoutes"]) == ("http", 1)
    assert reasons(listener["conditions"])["Programmed"] == "True/Programmed"
    (parent,) = cluster.get("httproute", "r")["status"]["parents"]
    assert parent["controllerName"] == "eastgate.dev/gateway-controller"
    assert reasons(parent["conditions"]) == {"Accepted": "True/Accepted", "ResolvedRefs": "True/ResolvedRefs"}
    gateway_class = cluster.server.get("gatewayclass", cluster.gateway_class)
    assert reasons(gateway_class["status"]["conditions"])["Accepted"] == "True/Accepted"


def test_nothing_is_written_twice(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway(), _route(cluster.namespace))
    assert cluster.reconcile().written
    assert cluster.reconcile(now=_LATER).written == ()


def test_changes_of_other_writers_are_reverted_and_additions_stay(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway())
    cluster.reconcile()
    changes = {
        "metadata": {"annotations": {"example.com/note": "kept"}},
        "spec": {"template": {"spec": {"automountServiceAccountToken": True, "hostNetwork": False}}},
    }
    where = ("deployment", "gw-eastgate", "-n", cluster.namespace)
    cluster.server.kubectl("patch", *where, "--type=strategic", "-p", json.dumps(changes))
    assert [kind for kind, _, _ in cluster.reconcile().written] == ["Deployment"]
    deployment = cluster.get("deployment", "gw-eastgate")
    assert deployment["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    assert deployment["metadata"]["annotations"]["example.com/note"] == "kept"
    assert cluster.reconcile().written == ()


def test_a_change_of_the_gateway_changes_its_objects(cluster: Cluster) -> None:
    parameters = {"kind": "ConfigMap", "group": "", "name": "parameters"}
    data = {"serviceType": "ClusterIP", "replicas": "1", "maxReplicas": "3", "cpuRequest": "1000m"}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "parameters", "namespace": cluster.namespace},
            "data": data,
        },
        cluster.gateway(
            {"name": "http", "port": 80, "protocol": "HTTP"},
            {"name": "other", "port": 8080, "protocol": "HTTP"},
            infrastructure={
                "labels": {"team": "edge"},
                "annotations": {"example.com/a": "b"},
                "parametersRef": parameters,
            },
        ),
    )
    assert cluster.reconcile().errors == {}
    assert cluster.names()["horizontalpodautoscalers"] == ["gw-eastgate"]
    service = cluster.get("service", "gw-eastgate")
    assert service["spec"]["type"] == "ClusterIP"
    assert [port["port"] for port in service["spec"]["ports"]] == [80, 8080]
    assert service["metadata"]["labels"]["team"] == "edge"
    assert service["metadata"]["annotations"]["example.com/a"] == "b"
    assert cluster.reconcile().written == ()  # 1000m is 1
    assert cluster.conditions()["Programmed"] == "True/Programmed"

    cluster.apply(cluster.gateway({"name": "http", "port": 80, "protocol": "HTTP"}))
    assert cluster.reconcile().errors == {}
    assert cluster.names()["horizontalpodautoscalers"] == []
    service = cluster.get("service", "gw-eastgate")
    assert (service["spec"]["type"], [port["port"] for port in service["spec"]["ports"]]) == ("LoadBalancer", [80])
    assert "team" not in service["metadata"]["labels"]
    assert "example.com/a" not in service["metadata"]["annotations"]
    (listener,) = cluster.get("gateway", "gw")["status"]["listeners"]
    assert listener["name"] == "http"
    assert cluster.reconcile().written == ()


def test_an_account_of_another_owner_is_not_taken_over(cluster: Cluster) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "gw", "namespace": cluster.namespace}}
    cluster.apply(account, cluster.gateway())
    before = cluster.get("sa", "gw")["metadata"]
    assert cluster.reconcile().errors == {}
    after = cluster.get("sa", "gw")["metadata"]
    assert (after["resourceVersion"], after.get("ownerReferences")) == (before["resourceVersion"], None)
    assert cluster.names()["deployments"] == []
    (programmed,) = (
        entry for entry in cluster.get("gateway", "gw")["status"]["conditions"] if entry["type"] == "Programmed"
    )
    assert (programmed["status"], programmed["reason"]) == ("False", "NoResources")
    assert f"ServiceAccount {cluster.namespace}/gw" in programmed["message"]
    assert cluster.reconcile().written == ()


def test_entries_of_other_controllers_stay(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway(), _route(cluster.namespace))
    condition = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    entry = {"parentRef": {"name": "gw"}, "controllerName": "example.com/other", "conditions": [condition]}
    change = {"status": {"parents": [entry]}}
    where = ("httproute", "r", "-n", cluster.namespace, "--subresource=status", "--type=merge")
    cluster.server.kubectl("patch", *where, "-p", json.dumps(change))
    cluster.reconcile()
    parents = cluster.get("httproute", "r")["status"]["parents"]
    assert [parent["controllerName"] for parent in parents] == ["example.com/other", "eastgate.dev/gateway-controller"]
    assert parents[0]["conditions"] == [condition]
    assert reasons(parents[1]["conditions"])["ResolvedRefs"] == "False/BackendNotFound"
    assert cluster.reconcile().written == ()

    cluster.apply(_route(cluster.namespace, parentRefs=[{"name": "elsewhere"}]))
    cluster.reconcile()
    (parent,) = cluster.get("httproute", "r")["status"]["parents"]
    assert parent["controllerName"] == "example.com/other"


def test_a_forged_status_is_written_over(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway(), _route(cluster.namespace))
    cluster.reconcile(programmed=False)
    cluster.reconcile(programmed=False)
    gateway, route = cluster.get("gateway", "gw")["status"], cluster.get("httproute", "r")["status"]
    assert cluster.conditions()["Programmed"].startswith("False")

    def forged(conditions: list[dict[str, Any]], *more: str) -> list[dict[str, Any]]:
        like = {"status": "True", "reason": "Forged", "observedGeneration": 99, "message": ""}
        new = [{"type": type_, "lastTransitionTime": "2020-01-01T00:00:00Z", **like} for type_ in more]
        return [each | like for each in conditions] + new

    listeners = [each | {"conditions": forged(each["conditions"])} for each in gateway["listeners"]]
    lies = {"conditions": forged(gateway["conditions"], "ResolvedRefs", "Theirs"), "listeners": listeners}
    parents = [each | {"conditions": forged(each["conditions"])} for each in route["parents"]]
    for kind, name, status in (("gateway", "gw", lies), ("httproute", "r", {"parents": parents})):
        where = (kind, name, "-n", cluster.namespace, "--subresource=status", "--type=merge")
        cluster.server.kubectl("patch", *where, "--field-manager=forger", "-p", json.dumps({"status": status}))
    cluster.reconcile(programmed=False)
    after = cluster.get("gateway", "gw")["status"]
    kept = [each for each in after["conditions"] if each["type"] == "Theirs"]
    assert [each["observedGeneration"] for each in kept] == [99]
    ours = [each for each in after["conditions"] if each["type"] != "Theirs"]
    assert _timeless(after | {"conditions": ours}) == _timeless(gateway)
    assert _timeless(cluster.get("httproute", "r")["status"]) == _timeless(route)
    assert cluster.reconcile(programmed=False).written == ()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(each) for key, each in value.items() if key != "lastTransitionTime"}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def test_a_gateway_of_another_controller_loses_its_objects(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway())
    cluster.reconcile()
    made = cluster.names()
    elsewhere = f"other-{cluster.gateway_class}"
    cluster.apply(cluster.gateway() | {"spec": cluster.gateway()["spec"] | {"gatewayClassName": elsewhere}})
    cluster.reconcile()
    assert cluster.names() == made  # the class may yet come
    cluster.apply(_gateway_class(elsewhere, "example.com/controller"))
    cluster.reconcile(classes=[elsewhere])
    assert [name for names in cluster.names().values() for name in names] == ["default"]
    cluster.server.kubectl("delete", "gatewayclass", elsewhere)


def test_broken_parameters_change_nothing_and_are_named(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway())
    cluster.reconcile()
    before = cluster.get("deployment", "gw-eastgate")["metadata"]["resourceVersion"]
    reference = {"kind": "ConfigMap", "group": "", "name": "nowhere"}
    cluster.apply(cluster.gateway(infrastructure={"parametersRef": reference}))
    cluster.reconcile()
    assert cluster.conditions() == {"Accepted": "False/InvalidParameters", "Programmed": "False/Invalid"}
    assert cluster.get("deployment", "gw-eastgate")["metadata"]["resourceVersion"] == before


def test_a_status_of_a_gateway_that_changed_meanwhile_is_not_written(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway())
    stale = cluster.get("gateway", "gw")
    cluster.apply(cluster.gateway({"name": "other", "port": 81, "protocol": "HTTP"}))
    world, _ = world_of([stale])
    classes = [cluster.server.get("gatewayclass", cluster.gateway_class)]
    result = asyncio.run(cluster.reconcile_view(GatewayView(world, classes, [stale]), _NOW))
    assert ("Gateway", cluster.namespace, "gw") in result.conflicting
    assert "listeners" not in cluster.get("gateway", "gw")["status"]


def test_all_of_it_goes_with_the_gateway(controller_manager: ControllerManager) -> None:
    cluster = _cluster(controller_manager.server)
    cluster.apply(cluster.gateway())
    assert cluster.reconcile().errors == {}
    controller_manager.wait_until(lambda: bool(cluster.server.get("pods", "-n", cluster.namespace)["items"]))
    pod = cluster.server.get("pods", "-n", cluster.namespace)["items"][0]
    assert pod["spec"]["serviceAccountName"] == "gw"
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["token", "ca", "admin", "sources"]  # no other
    cluster.server.kubectl("delete", "gateway", "gw", "-n", cluster.namespace)
    controller_manager.wait_until(lambda: [name for names in cluster.names().values() for name in names] == ["default"])


class _Late:
    """A connection that does not see the objects of a kind, or fails with `error` on a request for them."""

    def __init__(self, connection: Connection, kind: str, error: ApiError | None = None) -> None:
        self._connection = connection
        self._kind = kind
        self._error = error or ApiError(404, "NotFound", "not yet")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Any:
        if resource.kind == self._kind:
            raise self._error
        return await self._connection.get(resource, name, namespace)


@pytest.mark.parametrize("fields", [{"automountServiceAccountToken": True}, {}], ids=["fields", "bare"])
def test_an_account_that_another_writer_creates_at_the_same_time_keeps_its_owner(
    cluster: Cluster, fields: dict[str, Any]
) -> None:
    cluster.server.create(
        f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts", {"metadata": {"name": "gw"}, **fields}
    )
    before = cluster.get("sa", "gw")
    cluster.apply(cluster.gateway())
    cluster.reconcile(wrap=lambda connection: _Late(connection, "ServiceAccount"))
    assert cluster.get("sa", "gw") == before
    assert cluster.names()["deployments"] == []
    assert cluster.conditions()["Programmed"] == "False/NoResources"


def test_a_service_that_another_writer_creates_at_the_same_time_keeps_its_owner(cluster: Cluster) -> None:
    theirs = {"metadata": {"name": "gw-eastgate"}, "spec": {"ports": [{"port": 81}]}}
    cluster.server.create(f"/api/v1/namespaces/{cluster.namespace}/services", theirs)
    before = cluster.get("service", "gw-eastgate")
    cluster.apply(cluster.gateway())
    cluster.reconcile(wrap=lambda connection: _Late(connection, "Service"))
    after = cluster.get("service", "gw-eastgate")
    assert after["spec"]["ports"] == before["spec"]["ports"]
    assert after["metadata"].keys() == before["metadata"].keys()
    assert cluster.conditions()["Programmed"] == "False/NoResources"


def test_listeners_that_another_controller_left_in_the_status_go(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway())
    left = {"name": "left", "supportedKinds": [], "attachedRoutes": 1, "conditions": []}
    where = ("gateway", "gw", "-n", cluster.namespace, "--subresource=status", "--type=merge")
    cluster.server.kubectl("patch", *where, "-p", json.dumps({"status": {"listeners": [left]}}))
    cluster.reconcile()
    assert [entry["name"] for entry in cluster.get("gateway", "gw")["status"]["listeners"]] == ["http"]
    assert cluster.reconcile().written == ()


def test_the_pods_are_accepted_where_pods_are_restricted(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway())
    cluster.reconcile()
    template = cluster.get("deployment", "gw-eastgate")["spec"]["template"]
    restricted = cluster.server.namespace("restricted", {"pod-security.kubernetes.io/enforce": "restricted"})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": template["metadata"] | {"name": "gw"},
        "spec": template["spec"],
    }
    arguments = ("create", "--dry-run=server", "-n", restricted, "-f", "-")
    cluster.server.kubectl(*arguments, stdin=json.dumps(pod))
    template["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    assert "violates PodSecurity" in cluster.server.kubectl(*arguments, stdin=json.dumps(pod), fails=True)


def test_a_forbidden_write_for_one_gateway_does_not_stop_the_others(cluster: Cluster) -> None:
    cluster.apply(cluster.gateway(), _route(cluster.namespace))
    refusal = ApiError(403, "Forbidden", "not you")
    result = cluster.reconcile(wrap=lambda connection: _Late(connection, "Deployment", refusal))
    assert result.errors == {("Gateway", cluster.namespace, "gw"): "not you"}
    (parent,) = cluster.get("httproute", "r")["status"]["parents"]
    assert reasons(parent["conditions"])["Accepted"] == "True/Accepted"
