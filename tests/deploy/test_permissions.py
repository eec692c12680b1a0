"""The controller with the rights of the chart: no request is denied, and no right is unused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from envoy.service.discovery.v3 import discovery_pb2

from eastgate.authority.sources.needs import watched_kinds
from eastgate.control.identity.ca import Lifetimes
from eastgate.controller.certificates.ca_secret import CA_NAME, new_secret
from eastgate.controller.gateways.objects import OBJECT_RESOURCES
from eastgate.controller.permissions import plural_of
from eastgate.controller.replica import ALSO_FOLLOWED
from eastgate.convert.native.writer import RESOURCES as NATIVE_RESOURCES
from eastgate.reading.kubernetes import Resource
from tests.authority.sources.objects import GROUP, policy
from tests.deploy.audit import audit_options, audited, unused
from tests.deploy.charts import NAMESPACE, Object, of_kind, render
from tests.deploy.controllers import Controller, arguments_of
from tests.programs import ApiServer

pytestmark = pytest.mark.apiserver

_ACCOUNT = f"{NAMESPACE}/eastgate"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_BUILT_IN = ("", "apps", "batch", "discovery.k8s.io", "extensions", "networking.k8s.io")
_ISTIO = [resource for resource in NATIVE_RESOURCES if resource.group == "security.istio.io"]
_LINKERD = [resource for resource in NATIVE_RESOURCES if resource.group == "policy.linkerd.io"]
_SETTINGS = {"linkerdDefaultPolicy": "deny"}
_TAMPERED = {"metadata": {"annotations": {"tampered": "yes"}}}
_XDS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"

_AT_GATEWAYS = {
    ("patch", "agentic.prototype.x-k8s.io", "accesspolicies/status"),
    ("patch", "agentic.networking.x-k8s.io", "accesspolicies/status"),
    ("patch", "agentic.networking.x-k8s.io", "xaccesspolicies/status"),
}
"""The rights that the controller uses only with a connected Gateway proxy. Other projects define these kinds."""

REASONS = {
    "a policy is read again only after a concurrent write by another client": (
        ("get", "agentic.networking.x-k8s.io", "accesspolicies"),
        ("get", "agentic.networking.x-k8s.io", "xaccesspolicies"),
        ("get", "agentic.prototype.x-k8s.io", "accesspolicies"),
        ("get", "agentic.prototype.x-k8s.io", "xaccesspolicies"),
        ("get", "apim.kuadrant.io", "authpolicies"),
        ("get", "eastgate.dev", "clusterauthorizationpolicies"),
        ("get", "gateway.networking.x-k8s.io", "authorizationpolicies"),
        ("get", "gateway.networking.x-k8s.io", "xauthorizationpolicies"),
    ),
    "the GatewayClass is created if Gateway API is installed after the controller": (
        ("create", "gateway.networking.k8s.io", "gatewayclasses"),
    ),
}
"""The rights that the scenario does not always use, each with the reason why the controller needs it."""


@dataclass
class Installation:
    """A cluster with the chart, and a namespace `home` with objects of every kind."""

    server: ApiServer
    folder: Path
    home: str = ""
    rules: list[Object] = field(default_factory=list)
    replicas: int = 0

    def install(self, native: str = "", **more: object) -> list[Object]:
        """Install the chart, and return its objects. The RBAC rules of every installation are collected."""
        named = {"named": {self.home: ["tls"]}}
        values = {"native": native, "settings": _SETTINGS, "secrets": named, "crds": {"install": False}, **more}
        objects = render(values)
        roles = [*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role")]
        own = [role for role in roles if role["metadata"]["name"] in ("eastgate", "eastgate-secrets")]
        self.rules += [rule for role in own for rule in role["rules"]]
        self.server.apply(*(each for each in objects if "Webhook" not in each["kind"]))
        return objects

    def run(self, objects: list[Object]) -> Controller:
        """Start another replica, which serves the webhooks of the chart, and return it."""
        (deployment,) = of_kind(objects, "Deployment")
        self.replicas += 1
        name = f"eastgate-{self.replicas}"
        kubeconfig = self.server.kubeconfig_for(_ACCOUNT)
        controller = Controller(self.folder / name, kubeconfig, name, *arguments_of(deployment))
        webhooks = [_at_loopback(each, controller) for each in objects if "Webhook" in each["kind"]]
        if webhooks:
            self.server.apply(*webhooks)
        return controller

    def unused(self) -> set[tuple[str, str, str]]:
        return unused(self.rules, audited(self.folder))

    def made(self, resource: Resource) -> list[Object]:
        """Return the objects of a kind that the controller created in the namespace."""
        path = f"{resource.path(self.home)}?labelSelector=app.kubernetes.io/managed-by%3Deastgate"
        status, answer = self.server.request("GET", path)
        assert status == 200, answer
        items: list[Object] = answer["items"]
        return items

    def tamper(self, resources: Iterable[Resource]) -> None:
        """Change the native policies, and make the controller check them."""
        for resource in resources:
            for each in self.made(resource):
                status, answer = self.server.request(
                    "PATCH", resource.path(self.home, each["metadata"]["name"]), _TAMPERED
                )
                assert status == 200, answer
        self.server.create(f"/api/v1/namespaces/{self.home}/serviceaccounts", {"metadata": {"generateName": "new-"}})

    def is_tampered(self, resources: Iterable[Resource]) -> bool:
        objects = [each for resource in resources for each in self.made(resource)]
        return any("tampered" in (each["metadata"].get("annotations") or {}) for each in objects)


def _at_loopback(configuration: Object, controller: Controller) -> Object:
    """Return a webhook configuration with the address of a process instead of the Service, which has no pods here."""
    webhooks = []
    for webhook in configuration["webhooks"]:
        path = webhook["clientConfig"]["service"]["path"]
        url = f"https://localhost:{controller.ports['webhook']}{path}"
        webhooks.append({**webhook, "clientConfig": {"url": url}})
    return {**configuration, "webhooks": webhooks}


def _stand_ins(server: ApiServer) -> Iterator[Object]:
    """Yield CRDs of the kinds that the controller follows and the cluster lacks."""
    _, existing = server.request("GET", _DEFINITIONS)
    names = {each["metadata"]["name"] for each in existing["items"]}
    for kind in (*watched_kinds(), *ALSO_FOLLOWED):
        plural = plural_of(kind.group, kind.kind)
        if kind.group not in _BUILT_IN and f"{plural}.{kind.group}" not in names:
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            form = {"served": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
            names_of_versions = kind.versions or ("v1",)
            versions = [{**form, "name": name, "storage": name == names_of_versions[0]} for name in names_of_versions]
            yield {
                "metadata": {
                    "name": f"{plural}.{kind.group}",
                    "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
                },
                "spec": {
                    "group": kind.group,
                    "names": {"kind": kind.kind, "plural": plural},
                    "scope": "Namespaced",
                    "versions": versions,
                },
            }


def _are_served(server: ApiServer) -> bool:
    _, definitions = server.request("GET", _DEFINITIONS)
    conditions = [(each.get("status") or {}).get("conditions") or [] for each in definitions["items"]]
    return all(any(each["type"] == "Established" and each["status"] == "True" for each in own) for own in conditions)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with ApiServer(tmp_path, audit_options(tmp_path, _ACCOUNT)) as server:
        server.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        server.install("gateway-api", "linkerd")
        definitions = of_kind(render(), "CustomResourceDefinition")
        server.apply(*definitions)
        for definition in _stand_ins(server):
            server.create(_DEFINITIONS, definition)
        server.wait_until(lambda: _are_served(server))
        yield Installation(server, tmp_path, server.namespace("shop", {"eastgate.dev/injection": "enabled"}))


def _fill(server: ApiServer, home: str) -> None:
    text = (Path(__file__).parent / "cluster.yaml").read_text()
    server.kubectl("apply", "--server-side", "-n", home, "-f", "-", stdin=text)
    server.run_pod(home, "cart", "10.0.0.7")


def _run_gateway_pod(server: ApiServer, home: str) -> Object:
    """Create a pod of the Gateway's Deployment, as the Kubernetes controllers would."""
    (deployment,) = server.get("deployments", "-n", home)["items"]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "controller": True}
    owner |= {key: deployment["metadata"][key] for key in ("name", "uid")}
    template = deployment["spec"]["template"]
    labels = template["metadata"]["labels"]
    pod = {"name": "edge-1", "labels": labels, "ownerReferences": [owner]}
    server.create(f"/api/v1/namespaces/{home}/pods", {"metadata": pod, "spec": template["spec"]})
    server.run_pod(home, "edge-1", "10.0.0.8")
    created: Object = server.get("pod", "edge-1", "-n", home)
    return created


@contextmanager
def _connected(server: ApiServer, pod: Object, port: int) -> Iterator[None]:
    """Connect as the proxy of a Gateway pod, and never acknowledge a resource."""
    home, account = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
    token = server.token_of(f"{home}/{account}", "eastgate", pod=pod)
    roots: Any = server.get("configmap", CA_NAME, "-n", home)["data"]["ca.crt"].encode()
    options = [("grpc.ssl_target_name_override", f"eastgate.{NAMESPACE}.svc")]
    request = discovery_pb2.DeltaDiscoveryRequest(type_url="type.googleapis.com/envoy.config.listener.v3.Listener")
    request.node.id = f"gateway:{home}/edge/{pod['metadata']['name']}"
    requests: SimpleQueue[Any] = SimpleQueue()
    requests.put(request)
    with grpc.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(roots), options) as channel:
        call = channel.stream_stream(_XDS, discovery_pb2.DeltaDiscoveryRequest.SerializeToString, lambda data: data)
        answers = call(iter(requests.get, None), metadata=(("authorization", f"Bearer {token}"),))
        next(answers)
        yield
        requests.put(None)
        answers.cancel()


def _replace_ca(server: ApiServer) -> None:
    """Replace the controller's CA with one that must be rotated soon."""
    server.kubectl("delete", "secret", CA_NAME, "-n", NAMESPACE)
    lifetimes = Lifetimes(root=timedelta(days=100))
    secret = new_secret("cluster.local", NAMESPACE, CA_NAME, lifetimes, datetime.now(UTC))
    server.create(f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)


def test_nothing_is_denied_and_nothing_is_to_spare(installation: Installation) -> None:
    server, home = installation.server, installation.home
    _fill(server, home)

    with installation.run(installation.install("istio")) as controller:
        controller.wait_until(lambda: all(map(installation.made, _ISTIO)))
        installation.tamper(_ISTIO)
        controller.wait_until(lambda: not installation.is_tampered(_ISTIO))
        controller.wait_until(lambda: all(map(installation.made, OBJECT_RESOURCES)))
        with _connected(server, _run_gateway_pod(server, home), controller.ports["xds"]):
            controller.wait_until(lambda: not installation.unused() & _AT_GATEWAYS)
        controller.finish()

    _replace_ca(server)
    with installation.run(installation.install("linkerd")) as controller:
        controller.wait_until(lambda: all(map(installation.made, _LINKERD)))
        installation.tamper(_LINKERD)
        controller.wait_until(lambda: not installation.is_tampered(_LINKERD))
        controller.wait_until(lambda: not any(map(installation.made, _ISTIO)))
        controller.finish()

    with installation.run(installation.install("istio")) as controller:
        controller.wait_until(lambda: not any(map(installation.made, _LINKERD)))
        path = f"/apis/gateway.networking.k8s.io/v1/namespaces/{home}/gateways/edge"
        assert server.request("PATCH", path, {"spec": {"gatewayClassName": "other"}})[0] == 200
        controller.wait_until(lambda: not any(map(installation.made, OBJECT_RESOURCES)))
        controller.finish()

    server.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "eastgate")
    off = {"enabled": False}
    with installation.run(installation.install(gateways=off, webhooks=off)) as controller:
        server.apply(policy(home, "later", ["web"]))
        path = f"/apis/{GROUP}/v1alpha2/namespaces/{home}/authorizationpolicies/later"
        controller.wait_until(lambda: "ancestors" in (server.request("GET", path)[1].get("status") or {}))
        controller.finish()

    denied = [str(request) for request in audited(installation.folder) if request.status == 403]
    assert denied == []
    assert installation.unused() <= {each for reason in REASONS.values() for each in reason}
