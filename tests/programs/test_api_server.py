"""The behaviour of the API server for tests."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import self_signed
from tests.programs import ApiServer, ControllerManager
from tests.programs.crds import NAMES, crds

pytestmark = pytest.mark.apiserver

_TIMEOUT_SECONDS = 60
MAPS = "/api/v1/namespaces/default/configmaps"


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + _TIMEOUT_SECONDS
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_an_account_has_its_rights_and_no_others(api_server: ApiServer) -> None:
    namespace = api_server.namespace("accounts")
    kubeconfig = api_server.kubeconfig_for(f"{namespace}/reader")
    read = ("get", "configmaps", "-n", namespace)
    assert "forbidden" in api_server.try_kubectl(*read, kubeconfig=kubeconfig).stderr
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    metadata = {"name": "reader", "namespace": namespace}
    binding = {"roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"}, "subjects": [subject]}
    api_server.apply(
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": metadata, **binding},
    )
    wait_until(lambda: api_server.try_kubectl(*read, kubeconfig=kubeconfig).returncode == 0)
    refused = api_server.try_kubectl("delete", "configmap", "any", "-n", namespace, kubeconfig=kubeconfig)
    assert "forbidden" in refused.stderr


def test_a_token_is_reviewed_for_its_audience_and_its_pod(api_server: ApiServer) -> None:
    namespace = api_server.namespace("tokens")
    api_server.token_of(f"{namespace}/web")
    containers = [{"name": "web", "image": "web"}]
    pod = {"metadata": {"name": "web-1"}, "spec": {"serviceAccountName": "web", "containers": containers}}
    pod = api_server.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    token = api_server.token_of(f"{namespace}/web", "eastgate", pod=pod)

    def review(*audiences: str) -> Any:
        body = {"spec": {"token": token, "audiences": list(audiences)}}
        return api_server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)[1]["status"]

    assert review("eastgate")["user"]["username"] == f"system:serviceaccount:{namespace}:web"
    assert review("eastgate")["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["web-1"]
    assert not review("other").get("authenticated")


def test_a_restarted_server_has_its_data(own_api_server: ApiServer) -> None:
    for number, end in enumerate((own_api_server.terminate, own_api_server.kill)):
        own_api_server.create(MAPS, {"metadata": {"name": f"before-{number}"}})
        end()
        with pytest.raises(OSError, match="refused"):
            own_api_server.request("GET", MAPS)
        own_api_server.start_again()
        assert own_api_server.request("GET", f"{MAPS}/before-{number}")[0] == 200


@pytest.mark.parametrize("own_api_server", [("--watch-cache=false",)], indirect=True, ids=["without-cache"])
def test_what_is_compacted_cannot_be_watched(own_api_server: ApiServer) -> None:
    old = own_api_server.create(MAPS, {"metadata": {"name": "old"}})["metadata"]["resourceVersion"]
    for name in ("missed", "last"):
        own_api_server.create(MAPS, {"metadata": {"name": name}})
    assert own_api_server.compact() > int(old)
    status, answer = own_api_server.request("GET", f"{MAPS}?watch=1&timeoutSeconds=5&resourceVersion={old}")
    assert (status if status != 200 else answer["object"]["code"]) == 410


def test_controllers_run_a_deployment(controller_manager: ControllerManager) -> None:
    server = controller_manager.server
    namespace = server.namespace("deployed")
    labels = {"app": "web"}
    containers = [{"name": "web", "image": "web"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    metadata = {"name": "web", "namespace": namespace}
    server.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": labels, "ports": [{"port": 80}]},
        },
    )

    def names() -> list[str]:
        return [pod["metadata"]["name"] for pod in server.get("pods", "-n", namespace)["items"]]

    wait_until(lambda: len(names()) == 2)
    for number, name in enumerate(names(), start=1):
        server.run_pod(namespace, name, f"10.0.0.{number}")

    def addresses() -> set[str]:
        slices = server.get("endpointslices", "-n", namespace)["items"]
        return {address for one in slices for endpoint in one["endpoints"] or () for address in endpoint["addresses"]}

    wait_until(lambda: addresses() == {"10.0.0.1", "10.0.0.2"})


def test_all_definitions_install_beside_each_other(own_api_server: ApiServer) -> None:
    own_api_server.install(*NAMES)
    installed = {definition["metadata"]["name"] for definition in own_api_server.get("crd")["items"]}
    assert installed == {definition["metadata"]["name"] for name in NAMES for definition in crds(name)}


class _Refusing(BaseHTTPRequestHandler):
    """A webhook that refuses every request with a message."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {"uid": asked["request"]["uid"], "allowed": False, "status": {"message": "the webhook says no"}}
        body = json.dumps({"apiVersion": asked["apiVersion"], "kind": asked["kind"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the base class
        pass


@contextmanager
def refusing_webhook(folder: Path) -> Iterator[dict[str, str]]:
    """Run a webhook, and yield its client configuration for an API server."""
    certificate, key = self_signed("localhost")
    pem = folder / "webhook.pem"
    pem.write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with HTTPServer(("127.0.0.1", 0), _Refusing) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"https://localhost:{server.server_port}/"
            yield {"url": url, "caBundle": base64.b64encode(certificate).decode()}
        finally:
            server.shutdown()
            thread.join()


def test_webhooks_on_loopback_are_asked(api_server: ApiServer, tmp_path: Path) -> None:
    namespace = api_server.namespace("webhook")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    with refusing_webhook(tmp_path) as client_config:
        webhook = {
            "name": "refusing.eastgate.test",
            "clientConfig": client_config,
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        api_server.apply(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": namespace},
                "webhooks": [webhook],
            }
        )
        try:
            create = ("create", "configmap", "any", "-n", namespace, "--dry-run=server")
            wait_until(lambda: "the webhook says no" in api_server.try_kubectl(*create).stderr)
        finally:
            api_server.kubectl("delete", "validatingwebhookconfiguration", namespace)
