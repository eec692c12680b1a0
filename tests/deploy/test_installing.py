"""The chart and the manifests on a real API server: applied, upgraded, rolled back and removed."""

from __future__ import annotations

import json
import os
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.charts import CHART, MANIFESTS, NAMESPACE, Object, helm_program, of_kind, render
from tests.deploy.controllers import arguments_of
from tests.programs import ApiServer, crds

pytestmark = pytest.mark.apiserver

_CONFIGURATIONS = ("validatingwebhookconfiguration/eastgate", "mutatingwebhookconfiguration/eastgate")
_CONVERTED = "crd/authorizationpolicies.gateway.networking.x-k8s.io"
_VALUES: dict[str, Object] = {
    "default": {},
    "native": {"native": "istio", "secrets": {"access": "all"}, "rbac": {"ownerReferences": True}},
    "small": {"replicas": 1, "webhooks": {"enabled": False}, "gateways": {"enabled": False}},
    "policies": {"admissionPolicies": {"enabled": True, "mode": "ambient"}, "gateways": {"createClass": True}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server of this file: what is installed here concerns all namespaces."""
    with ApiServer(tmp_path_factory.mktemp("api-server")) as server:
        server.apply(*(each for each in crds("gateway-api") if each["spec"]["names"]["kind"] == "GatewayClass"))
        server.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield server


def helm(server: ApiServer, *arguments: str | Path) -> str:
    variables = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "HELM_CACHE_HOME": str(server.folder / "helm")}
    command = [helm_program(), *arguments, "--namespace", NAMESPACE]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bundle_of(server: ApiServer, name: str) -> str | None:
    """Return what the API server trusts when it asks the first webhook of an object."""
    configured: Any = server.get(name)
    clients = [each["clientConfig"] for each in configured.get("webhooks") or ()]
    if not clients:
        clients = [configured["spec"]["conversion"]["webhook"]["clientConfig"]]
    bundle: str | None = clients[0].get("caBundle")
    return bundle


def write_bundle(server: ApiServer, name: str, bundle: str) -> None:
    """Write a caBundle as the leader does: by replacing the object."""
    configured: Any = server.get(name)
    for webhook in configured.get("webhooks") or [configured["spec"]["conversion"]["webhook"]]:
        webhook["clientConfig"]["caBundle"] = bundle
    kinds = {
        "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    }
    path = f"{kinds[configured['kind']]}/{configured['metadata']['name']}?fieldManager=eastgate"
    status, answer = server.request("PUT", path, configured)
    assert status == 200, answer


@pytest.fixture(scope="module")
def definitions(server: ApiServer) -> None:
    """The definitions, which come before everything else."""
    server.kubectl("apply", "--server-side", "-f", str(MANIFESTS / "crds.yaml"))


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("values", _VALUES.values(), ids=_VALUES)
def test_the_chart_is_accepted(server: ApiServer, values: Object) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": render({**values, "crds": {"install": False}})}
    text = json.dumps(listed)
    server.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)


@pytest.mark.usefixtures("definitions")
def test_the_manifests_are_accepted(server: ApiServer) -> None:
    for name in ("install.yaml", "gatewayclass.yaml"):
        server.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", str(MANIFESTS / name))


def test_install_upgrade_rollback_uninstall(server: ApiServer) -> None:
    helm(server, "install", "eastgate", CHART, "--take-ownership", "--force-conflicts")
    policy = {
        "apiVersion": "eastgate.dev/v1alpha1",
        "kind": "ClusterAuthorizationPolicy",
        "metadata": {"name": "kept"},
        "spec": {"tier": "Admin", "priority": 20, "action": "DENY", "rules": [{}]},
    }
    pem = b64encode(server.certificate.read_bytes()).decode()
    for name in (*_CONFIGURATIONS, _CONVERTED):
        assert bundle_of(server, name) is None
        write_bundle(server, name, pem)
    server.kubectl("delete", *_CONFIGURATIONS[:1])  # nobody answers here
    server.apply(policy)

    helm(server, "upgrade", "eastgate", CHART, "--set", "native=istio")
    assert {bundle_of(server, name) for name in (_CONFIGURATIONS[1], _CONVERTED)} == {pem}
    assert "--native=istio" in arguments_of(server.get("deployment/eastgate", "-n", NAMESPACE))

    helm(server, "rollback", "eastgate", "1")
    assert {bundle_of(server, name) for name in (_CONFIGURATIONS[1], _CONVERTED)} == {pem}
    assert "--native=istio" not in arguments_of(server.get("deployment/eastgate", "-n", NAMESPACE))

    helm(server, "uninstall", "eastgate")
    assert server.get("clusterrole", "-l", "app.kubernetes.io/name=eastgate")["items"] == []
    assert server.get("clusterauthorizationpolicy", "kept")["spec"]["action"] == "DENY"


def test_a_role_of_the_chart_gives_nothing_away(server: ApiServer) -> None:
    """The account may not read Secrets, run pods, or give rights to anybody."""
    server.apply(*of_kind(render(), "ClusterRole"), *of_kind(render(), "ClusterRoleBinding"))
    kubeconfig = server.kubeconfig_for(f"{NAMESPACE}/eastgate")
    for question in ("get secrets", "list secrets", "create pods", "create pods/exec", "create clusterrolebindings"):
        answer = server.try_kubectl("auth", "can-i", *question.split(), "-n", "default", kubeconfig=kubeconfig)
        assert answer.stdout.strip() == "no", question
