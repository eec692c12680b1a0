"""Attacks that try to bypass an Invariant by overloading the judge, with a real API server."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from eastgate.controller.admission.configuration import validating_configuration
from eastgate.controller.admission.conversion import convert_object
from eastgate.controller.admission.semantic import Judge
from eastgate.controller.admission.webhooks import Webhooks
from eastgate.controller.admitting import judge_change, refuse_unjudged
from eastgate.reports.crds import definitions
from eastgate.reports.invariants.objects import read_invariant
from tests.certificates import self_signed
from tests.controller.admission.reviews import admission_review
from tests.controller.admission.running import RunningWebhooks, run_webhooks
from tests.controller.admission.semantic.heavy import closed, many_rules
from tests.controller.admission.semantic.world import Manifest, authority, gep, invariant
from tests.controller.replicas import Replicas
from tests.patience import PATIENCE
from tests.programs import ApiServer, crds

pytestmark = [pytest.mark.apiserver, pytest.mark.untraced]

_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_OTHER = "cluster.local/ns/shop/sa/other"
_API_SERVER = "kube-apiserver"
_ATTACKER = "127.0.0.9"  # the source address of the attacker
_MANY = 12


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the client certificate and the key of the API server."""
    folder = tmp_path_factory.mktemp("client")
    certificate, key = self_signed(_API_SERVER)
    (folder / "tls.crt").write_bytes(certificate)
    (folder / "tls.key").write_bytes(key)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, client: Path) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("api-server")
    user = {"client-certificate": str(client / "tls.crt"), "client-key": str(client / "tls.key")}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}
    (folder / "webhooks.json").write_text(json.dumps(kubeconfig))
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(folder / "webhooks.json"),
    }
    plugins = [{"name": "ValidatingAdmissionWebhook", "configuration": configuration}]
    admission = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
    (folder / "admission.json").write_text(json.dumps(admission))
    with ApiServer(folder, (f"--admission-control-config-file={folder / 'admission.json'}",)) as running:
        for name in ("shop", "sandbox"):
            running.create("/api/v1/namespaces", {"metadata": {"name": name}})
        yield running


class Guarded:
    """An API server with judged changes; payments in shop are closed to sandbox, and an Invariant protects that."""

    def __init__(self, server: ApiServer, webhooks: RunningWebhooks) -> None:
        self._server = server
        self.webhooks = webhooks

    def post(self, manifest: Manifest, *, dry: bool = False, token: str | None = None) -> tuple[int, Any]:
        """Create a policy over a new connection; return the status and the answer."""
        trusted = ssl.create_default_context(cafile=str(self._server.certificate))
        connection = http.client.HTTPSConnection(urlsplit(self._server.url).netloc, context=trusted, timeout=PATIENCE)
        try:
            headers = {"Authorization": f"Bearer {token or self._server.token}", "Content-Type": "application/json"}
            target = _path(manifest) + ("?dryRun=All" if dry else "")
            connection.request("POST", target, json.dumps(manifest), headers)
            answer = connection.getresponse()
            content = answer.read()
            is_json = answer.getheader("Content-Type", "").startswith("application/json")
            return answer.status, json.loads(content) if is_json else content.decode()
        finally:
            connection.close()

    def assert_kept(self, manifest: Manifest) -> str:
        """Try to store a breach of the Invariant; return the reason of the refusal."""
        status, answer = self.post(manifest)
        assert status == 403, answer
        assert self._server.request("GET", f"{_path(manifest)}/{manifest['metadata']['name']}")[0] == 404
        message = str(answer["message"])
        assert "Invariant/shop/i" in message
        return message

    def assert_broken(self, manifest: Manifest) -> None:
        """Try a breach until it is judged: at first there may be no time for that."""
        end = time.monotonic() + PATIENCE
        while "breaks Invariant/shop/i" not in (message := self.assert_kept(manifest)):
            assert time.monotonic() < end, message

    def assert_admitted(self, manifest: Manifest, namespace: str) -> None:
        """Create a policy that no Invariant is about, as another user; repeat it after a timeout."""
        token = self._server.token_of(f"{namespace}/jane")
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        jane = {"kind": "ServiceAccount", "name": "jane", "namespace": namespace}
        binding = {"metadata": {"name": "jane"}, "roleRef": role, "subjects": [jane]}
        self._server.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        moved = manifest | {"metadata": manifest["metadata"] | {"namespace": namespace}}
        end = time.monotonic() + PATIENCE
        while (answer := self.post(moved, dry=True, token=token))[0] != 201:
            assert "Invariant" not in str(answer)
            assert time.monotonic() < end, answer

    def wait_for_webhooks(self, manifest: Manifest) -> None:
        end = time.monotonic() + PATIENCE
        while (answer := self.post(manifest, dry=True))[0] != 403:
            assert time.monotonic() < end, answer
            time.sleep(0.2)

    @contextmanager
    def under_attack(self, attack: Callable[[], object]) -> Iterator[None]:
        """Run many attackers in a loop."""
        over = threading.Event()

        def go_on() -> None:
            while not over.is_set():
                attack()

        with ThreadPoolExecutor(_MANY) as attackers:
            running = [attackers.submit(go_on) for _ in range(_MANY)]
            try:
                yield
            finally:
                over.set()
        for each in running:
            each.result()


def _path(manifest: Manifest) -> str:
    return f"/apis/{manifest['apiVersion']}/namespaces/{manifest['metadata']['namespace']}/authorizationpolicies"


@contextmanager
def guard(server: ApiServer, is_ignored: bool, client_ca: str | None = None) -> Iterator[Guarded]:
    """Guard payments by a policy whose webhook has the failure policy Ignore or Fail."""
    present = closed() if is_ignored else gep("p", "shop/web")
    judge = Judge(authority(present), [read_invariant(invariant("i"))])
    own = "system:serviceaccount:eastgate-system:eastgate"
    webhooks = Webhooks(judge=partial(judge_change, judge, own, None), late=partial(refuse_unjudged, judge, own))
    with run_webhooks(webhooks, client_ca=client_ca, client_names=[_API_SERVER]) as running:
        guarded = Guarded(server, running)
        for definition in (*crds("istio"), *definitions(running.webhook)):
            if definition["spec"]["names"]["plural"] == "authorizationpolicies":
                _put(server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        configuration = validating_configuration(running.webhook)
        for webhook in configuration["webhooks"]:
            webhook["timeoutSeconds"] = 30  # a busy machine may need this long for an answer
        _put(server, _CONFIGURATIONS, configuration)
        try:
            guarded.wait_for_webhooks(breaking(is_ignored, "canary"))
            yield guarded
        finally:
            server.request("DELETE", f"{_CONFIGURATIONS}/eastgate")
            judge.close()


def _put(server: ApiServer, path: str, manifest: Manifest) -> None:
    """Create or replace an object."""
    name = manifest["metadata"]["name"]
    status, answer = server.request("POST", path, manifest)
    if status == 409:
        _, present = server.request("GET", f"{path}/{name}")
        version = present["metadata"]["resourceVersion"]
        new = manifest | {"metadata": manifest["metadata"] | {"resourceVersion": version}}
        status, answer = server.request("PUT", f"{path}/{name}", new)
    assert status in (200, 201), answer


def breaking(is_ignored: bool, name: str) -> Manifest:
    """Return a small policy that breaks the Invariant."""
    return many_rules(name, 1) if is_ignored else gep(name, "sandbox/*")


def test_a_policy_with_201_rules_does_not_get_past_an_invariant(server: ApiServer) -> None:
    with guard(server, is_ignored=True) as guarded:
        guarded.assert_broken(many_rules("many", 201))


@pytest.mark.parametrize("is_ignored", [True, False], ids=["Ignore", "Fail"])
def test_parallel_dry_runs_get_no_change_past_an_invariant(server: ApiServer, is_ignored: bool) -> None:
    with (
        guard(server, is_ignored) as guarded,
        guarded.under_attack(lambda: guarded.post(many_rules("heavy", 201, _OTHER), dry=True)),
    ):
        for number in range(3):
            guarded.assert_kept(breaking(is_ignored, f"beside-{number}"))
        guarded.assert_admitted(gep("harmless", "sandbox/toy"), "sandbox")


@pytest.mark.parametrize("is_ignored", [True, False], ids=["Ignore", "Fail"])
def test_connections_of_others_get_no_change_past_an_invariant(server: ApiServer, is_ignored: bool) -> None:
    """Other clients send reviews that take long to judge, posing as an API server."""
    heavy = admission_review(many_rules("heavy", 201, _OTHER))
    with (
        guard(server, is_ignored) as guarded,
        guarded.under_attack(lambda: _review(guarded.webhooks, heavy)),
    ):
        guarded.assert_kept(breaking(is_ignored, "beside-others"))
        guarded.assert_broken(breaking(is_ignored, "beside-others"))


def test_idle_and_slow_connections_of_other_clients_delay_no_review(server: ApiServer) -> None:
    with guard(server, is_ignored=True) as guarded:
        slow = [_connect(guarded.webhooks) for _ in range(300)]
        for connection in slow[::2]:
            with suppress(OSError):  # the first connections were closed in favour of others
                connection.sendall(b"POST /validate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n{")
        guarded.assert_broken(breaking(is_ignored=True, name="beside-idle"))
        for connection in slow:
            connection.close()


def test_only_an_api_server_with_a_certificate_is_answered(server: ApiServer, client: Path) -> None:
    """The API server never has a client certificate for conversion."""
    with guard(server, is_ignored=False, client_ca=str(client / "tls.crt")) as guarded:
        guarded.assert_broken(breaking(is_ignored=False, name="certified"))
        review = admission_review(breaking(is_ignored=False, name="q"))
        assert _review(guarded.webhooks, review).startswith(b"HTTP/1.1 403")
        old = convert_object(gep("old", "sandbox/*"), "gateway.networking.x-k8s.io/v1alpha1")
        guarded.assert_broken(old)


def test_a_replica_answers_only_clients_in_its_options(server: ApiServer, client: Path, tmp_path: Path) -> None:
    server.install("eastgate")
    certificate, key = client / "tls.crt", client / "tls.key"
    for name, expected in ((_API_SERVER, 400), ("another", 403)):
        folder = tmp_path / name
        folder.mkdir()
        options = [f"--webhook-client-ca={certificate}", f"--webhook-client-name={name}"]
        with Replicas(server, folder, options) as replicas:
            replicas.start_all("a")
            trusted = ssl.create_default_context()
            trusted.check_hostname, trusted.verify_mode = False, ssl.CERT_NONE
            port = replicas.ports["a"]["webhook"]
            assert _status(port, trusted, "/validate") == 403
            assert _status(port, trusted, "/convert") == 400  # the body is read, and is not a review
            trusted.load_cert_chain(certificate, key)
            assert _status(port, trusted, "/validate") == expected


def _status(port: int, trusted: ssl.SSLContext, path: str) -> int:
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusted, timeout=PATIENCE)
    try:
        connection.request("POST", path, "{}")
        return connection.getresponse().status
    finally:
        connection.close()


def _connect(webhooks: RunningWebhooks) -> ssl.SSLSocket:
    trusted = ssl.create_default_context(cadata=webhooks.certificates)
    plain = socket.create_connection(("127.0.0.1", webhooks.port), PATIENCE, source_address=(_ATTACKER, 0))
    return trusted.wrap_socket(plain, server_hostname="localhost")


def _review(webhooks: RunningWebhooks, review: Manifest) -> bytes:
    """Send a review from another address than that of the API server; return the answer."""
    body = json.dumps(review).encode()
    head = f"POST /validate?timeout=10s HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
    try:
        with _connect(webhooks) as connection:
            connection.sendall(f"{head}connection: close\r\n\r\n".encode() + body)
            return connection.recv(1000)
    except OSError:
        return b""
