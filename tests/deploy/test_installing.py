"""The chart and the manifests on a real API server: applied, upgraded, rolled back and removed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eastgate._version import __version__
from tests.deploy.charts import CHART, MANIFESTS, NAMESPACE, ROOT, Object, helm_program, of_kind, render
from tests.deploy.controllers import arguments_of
from tests.programs import ApiServer, ControllerManager, crds, find

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
    """Run an API server for this file, since an installation affects all namespaces."""
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
    """Return the CA bundle of the first webhook of an object."""
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
    """Install the CRDs, which come before all other objects."""
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
    server.kubectl("delete", *_CONFIGURATIONS[:1])  # no webhook runs here
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


def documented_upgrade() -> list[list[str]]:
    """Return the commands of each block in the section about upgrades."""
    section = (
        (ROOT / "docs" / "operations" / "installation.md").read_text().split("\n## Upgrading\n")[1].split("\n## ")[0]
    )
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    assert [block.split()[0] for block in blocks] == ["helm", "kubectl"]
    return [block.splitlines() for block in blocks]


def release(folder: Path, version: str) -> Path:
    """Return a folder with `deploy` of another version, with different CRDs."""
    deploy = folder / version / "deploy"
    shutil.copytree(CHART.parents[1], deploy)
    for path in (*deploy.rglob("crds/*.yaml"), *deploy.rglob("unconverted/*.yaml"), deploy / "manifests" / "crds.yaml"):
        described = rf"\g<1>        description: as of {version}\n"
        top = r"(openAPIV3Schema:\n        type: object\n)        description: [^\n]*\n"
        text, number = re.subn(top, described, path.read_text())
        assert number
        path.write_text(text)
    chart = deploy / "chart" / "eastgate" / "Chart.yaml"
    chart.write_text(re.sub(r"(?m)^(version|appVersion): .*$", rf"\1: {version}", chart.read_text()))
    install = deploy / "manifests" / "install.yaml"
    install.write_text(install.read_text().replace(f'"{__version__}"', f'"{version}"'))
    return deploy.parent


def follow(server: ApiServer, commands: list[str], folder: Path) -> None:
    """Run the documented commands, in a folder with the new version."""
    programs = {"helm": helm_program(), "kubectl": find("kubectl")}
    variables = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "HELM_CACHE_HOME": str(server.folder / "helm")}
    for command in commands:
        name, *arguments = shlex.split(command, comments=True)
        done = subprocess.run(
            [programs[name], *arguments], capture_output=True, text=True, env=variables, cwd=folder, timeout=120
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert "conflict" not in done.stderr, done.stderr


def is_upgraded(server: ApiServer, version: str) -> bool:
    definition = server.get("crd/authpolicies.apim.kuadrant.io")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    deployment = server.get("deployment/eastgate", "-n", NAMESPACE)["metadata"]["labels"]
    return (definition["description"], deployment["app.kubernetes.io/version"]) == (f"as of {version}", version)


@pytest.mark.parametrize("way", ["helm", "manifests", "helm after kubectl"])
def test_the_documented_upgrade_works_again_and_again(own_api_server: ApiServer, tmp_path: Path, way: str) -> None:
    server = own_api_server
    by_helm, by_manifests = documented_upgrade()
    server.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    old = release(tmp_path, "0.0.1")
    if way == "manifests":
        for name in ("crds.yaml", "install.yaml"):
            server.kubectl("apply", "--server-side", "-f", str(old / "deploy" / "manifests" / name))
    else:
        helm(server, "install", "eastgate", old / "deploy" / "chart" / "eastgate")
    pem = b64encode(server.certificate.read_bytes()).decode()
    for name in (*_CONFIGURATIONS, _CONVERTED):
        write_bundle(server, name, pem)  # as the leader does, a second manager of these fields
    for number in (2, 3):
        new = release(tmp_path, f"0.0.{number}")
        if way == "helm after kubectl":  # the CRDs were applied with kubectl, not with Helm
            follow(server, by_manifests[:1], new)
        follow(server, by_manifests if way == "manifests" else by_helm, new)
        assert is_upgraded(server, f"0.0.{number}")
        assert {bundle_of(server, name) for name in (*_CONFIGURATIONS, _CONVERTED)} == {pem}


def test_what_stays_goes_by_the_documented_commands(own_api_server: ApiServer) -> None:
    server = own_api_server
    section = (
        (ROOT / "docs" / "operations" / "installation.md").read_text().split("\n## Removing it\n")[1].split("\n## ")[0]
    )
    commands = re.findall(r"`(kubectl delete [^`]*)`", section)
    server.install("gateway-api", "istio")
    home = server.namespace("home")
    own = {"app.kubernetes.io/managed-by": "eastgate"}
    roots = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "eastgate-ca", "namespace": home}}
    labels = {**own, "eastgate.dev/source-uid": "1"}
    native = {"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "spec": {}}
    server.apply(roots, {**native, "metadata": {"name": "cart", "namespace": home, "labels": labels}})
    for name in ("crds.yaml", "install.yaml", "gatewayclass.yaml"):
        server.kubectl("apply", "--server-side", "-f", str(MANIFESTS / name))
    with ControllerManager(server):
        follow(server, commands, ROOT)
    kinds = "configmaps,authorizationpolicies.security.istio.io"
    assert [each["metadata"]["name"] for each in server.get(kinds, "-n", home)["items"]] == ["kube-root-ca.crt"]
    everywhere = server.kubectl("get", "crd,clusterrole,clusterrolebinding,gatewayclass,namespace", "-o", "name")
    defined = {each["metadata"]["name"] for each in of_kind(render(), "CustomResourceDefinition")}
    names = [name.partition("/")[2] for name in everywhere.split()]
    assert [name for name in names if "eastgate" in name or name in defined] == []


def test_stored_objects_equal_the_applied_ones(server: ApiServer) -> None:
    """Compare both: a field that an API server drops or adds would conflict between two managers."""
    for manager in ("one", "another", "one"):
        server.kubectl("apply", "--server-side", "-f", str(MANIFESTS / "crds.yaml"), f"--field-manager={manager}")


def test_a_class_that_the_controller_has_made_is_not_the_charts(server: ApiServer) -> None:
    made = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "eastgate"}}
    server.apply({**made, "spec": {"controllerName": "eastgate.dev/gateway-controller"}})
    values = ("--set", "crds.install=false", "--set", "webhooks.enabled=false")
    helm(server, "install", "eastgate", CHART, *values, "--take-ownership", "--force-conflicts")
    helm(server, "upgrade", "eastgate", CHART, *values)
    helm(server, "uninstall", "eastgate")
    assert server.get("gatewayclass", "eastgate")["metadata"].get("annotations", {}) == {}
    server.kubectl("delete", "gatewayclass", "eastgate")


def test_a_role_of_the_chart_gives_nothing_away(server: ApiServer) -> None:
    """Check that the account may not read Secrets, run pods, or grant rights."""
    server.apply(*of_kind(render(), "ClusterRole"), *of_kind(render(), "ClusterRoleBinding"))
    kubeconfig = server.kubeconfig_for(f"{NAMESPACE}/eastgate")
    for question in ("get secrets", "list secrets", "create pods", "create pods/exec", "create clusterrolebindings"):
        answer = server.try_kubectl("auth", "can-i", *question.split(), "-n", "default", kubeconfig=kubeconfig)
        assert answer.stdout.strip() == "no", question
