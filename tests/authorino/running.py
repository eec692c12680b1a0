"""A running Authorino with its API server, its gRPC interface, and issuers for tokens."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse
from envoy.service.auth.v3.external_auth_pb2_grpc import AuthorizationStub

from tests.programs import ApiServer, find
from tests.programs.processes import START_SECONDS

PROGRAMS = ("authorino", "etcd", "kube-apiserver", "kubectl")
_MODULE = "github.com/kuadrant/authorino"
SUPERSEDING = "--allow-superseding-host-subsets"
_NOT_FOUND = 5  # of gRPC
_API = "/apis/authorino.kuadrant.io/v1beta3"

Manifest = dict[str, Any]


def definition() -> Path:
    """Return the CustomResourceDefinition of the Authorino that the modules pin."""
    return module_folder() / "install" / "crd" / "authorino.kuadrant.io_authconfigs.yaml"


def module_folder() -> Path:
    """Return the folder with the sources of the Authorino that the modules pin."""
    lists = Path(__file__).parents[1] / "programs" / "go" / "authorino"
    command = ["go", "mod", "download", "-json", _module_version(lists)]
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    done = subprocess.run(command, cwd=lists, env=environment, capture_output=True, text=True, check=True, timeout=600)
    return Path(json.loads(done.stdout)["Dir"])


def _module_version(lists: Path) -> str:
    lines = (lists / "go.mod").read_text(encoding="utf-8").splitlines()
    words = next(line.split() for line in lines if _MODULE in line and " v" in line)
    place = words.index(_MODULE)
    return f"{_MODULE}@{words[place + 1]}"


class Authorino(ApiServer):
    """An Authorino that watches all namespaces of an API server of its own."""

    def __init__(self, folder: Path, *flags: str) -> None:
        super().__init__(folder)
        self.flags = flags

    @property
    def supersedes(self) -> bool:
        """Return whether a host is linked although a wildcard of another AuthConfig covers it."""
        return SUPERSEDING in self.flags

    def start(self) -> None:
        if {name for _, name in socket.if_nameindex()} != {"lo"}:
            pytest.fail("Authorino listens on every address: `make authorino` runs it in a network namespace")
        super().start()
        self.kubectl("apply", "--server-side", "-f", str(definition()))
        self._tls = ssl.create_default_context(cafile=self.certificate)
        self._tls.check_hostname = False
        self._channel = grpc.insecure_channel("127.0.0.1:50051")
        self._run_authorino()

    def stop(self) -> None:
        super().stop()
        if hasattr(self, "_channel"):
            self._channel.close()

    def _run_authorino(self) -> None:
        command: list[str | Path] = [find("authorino"), "server", "--log-level", "error", *self.flags]
        self.run(command, {"KUBECONFIG": str(self.kubeconfig)})
        self.wait_until(lambda: self._answer(CheckRequest()) is not None)

    def _answer(self, request: CheckRequest) -> CheckResponse | None:
        try:
            return self.check(request)
        except grpc.RpcError:
            return None

    def check(self, request: CheckRequest) -> CheckResponse:
        """Ask as Envoy does. Raises grpc.RpcError if Authorino dies."""
        return AuthorizationStub(self._channel).Check(request, timeout=30)

    def revive(self, keys: Iterable[str]) -> None:
        """Start a dead Authorino again, and wait until it knows the AuthConfigs of these hosts."""
        self.wait_for_end()
        self._run_authorino()
        for key in keys:
            self.wait_until(partial(self._is_known, key))

    def _is_known(self, host: str) -> bool:
        answer = self._answer(_about(host))
        return answer is not None and answer.status.code != _NOT_FOUND

    def _is_unknown(self, host: str) -> bool:
        answer = self._answer(_about(host))
        return answer is not None and answer.status.code == _NOT_FOUND

    def post(self, path: str, manifest: Manifest) -> tuple[int, Manifest]:
        """Create an object."""
        return self._call("POST", path, manifest)

    def create_namespace(self, name: str, objects: Iterable[Manifest]) -> None:
        """Create a namespace, and Secrets in it."""
        status, _ = self.post("/api/v1/namespaces", {"metadata": {"name": name}})
        assert status in (201, 409)
        for one in objects:
            status, answer = self.post(f"/api/v1/namespaces/{name}/secrets", one)
            assert status in (201, 409), answer

    def create_config(self, namespace: str, name: str, spec: Manifest) -> str | None:
        """Create an AuthConfig. Return the server's reason if it is refused."""
        manifest = {
            "apiVersion": "authorino.kuadrant.io/v1beta3",
            "kind": "AuthConfig",
            "metadata": {"name": name},
            "spec": spec,
        }
        path = f"{_API}/namespaces/{namespace}/authconfigs?fieldValidation=Strict"
        status, answer = self.post(path, manifest)
        return None if status == 201 else str(answer.get("message"))

    def wait_for_configs(self) -> dict[str, str]:
        """Wait until each AuthConfig has a status. Return the problems of those that are not ready."""
        end = time.monotonic() + START_SECONDS
        while True:
            _, listed = self._call("GET", f"{_API}/authconfigs")
            states = {
                f"{one['metadata']['namespace']}/{one['metadata']['name']}": _state(one) for one in listed["items"]
            }
            if all(state is not None for state in states.values()):
                return {name: state for name, state in states.items() if state}
            assert time.monotonic() < end, states
            time.sleep(0.2)

    def delete_configs(self, namespaces: Iterable[str], hosts: Iterable[str]) -> None:
        """Delete the AuthConfigs of some namespaces, and wait until no AuthConfig serves their hosts."""
        for namespace in namespaces:
            status, answer = self._call("DELETE", f"{_API}/namespaces/{namespace}/authconfigs")
            assert status == 200, answer
        for host in hosts:
            self.wait_until(partial(self._is_unknown, host))

    def delete_secrets(self, namespaces: Iterable[str]) -> None:
        """Delete the Secrets of some namespaces."""
        for namespace in namespaces:
            status, answer = self._call("DELETE", f"/api/v1/namespaces/{namespace}/secrets")
            assert status == 200, answer

    def _call(self, method: str, path: str, body: Manifest | None = None) -> tuple[int, Manifest]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=30) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


def _about(host: str) -> CheckRequest:
    request = CheckRequest()
    request.attributes.request.http.host = host
    return request


def _state(config: Manifest) -> str | None:
    """Return an empty text for a ready AuthConfig, None for one without a status, and otherwise its problem."""
    conditions = {one["type"]: one for one in config.get("status", {}).get("conditions", ())}
    ready = conditions.get("Ready")
    if ready is None or ready["reason"] in ("Unknown", "Reconciling") or "Available" not in conditions:
        return None
    return "" if ready["status"] == "True" else f"{ready['reason']}: {ready.get('message')}"
