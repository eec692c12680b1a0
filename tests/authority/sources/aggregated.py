"""An API server of one group of policies, behind the aggregation of another: an APIService leads to it."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.patience import PATIENCE
from tests.programs import ApiServer

ISTIO, VERSION = "security.istio.io", "v1"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
KIND = {
    "name": "authorizationpolicies",
    "singularName": "authorizationpolicy",
    "kind": "AuthorizationPolicy",
    "namespaced": True,
    "verbs": ["get", "list", "watch"],
}


def register(server: ApiServer, port: int, group: str = ISTIO) -> None:
    """Register a group that a port of this machine serves."""
    server.create(
        "/api/v1/namespaces/default/services",
        {"metadata": {"name": "aggregated"}, "spec": {"type": "ExternalName", "externalName": "localhost"}},
    )
    spec = {
        "group": group,
        "version": VERSION,
        "service": {"namespace": "default", "name": "aggregated", "port": port},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
    }
    server.create(SERVICES, {"metadata": {"name": f"{VERSION}.{group}"}, "spec": spec})


def look_again(server: ApiServer) -> None:
    """Make the API server ask the other one again for its kinds, which it otherwise does periodically."""
    path = f"{SERVICES}/{VERSION}.{ISTIO}"
    priority = server.request("GET", path)[1]["spec"]["versionPriority"]
    status, answer = server.request("PATCH", path, {"spec": {"versionPriority": priority + 1}})
    assert status == 200, answer


@contextmanager
def aggregated_server(server: ApiServer, objects: list[dict[str, Any]]) -> Iterator[int]:
    """Serve policies of Istio at a port, with the certificate of the API server. Its watches send no events."""
    ends = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            kinds = f"/apis/{ISTIO}/{VERSION}"
            if path == kinds:
                listed = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{ISTIO}/{VERSION}"}
                self._answer(200, {**listed, "resources": [KIND]})
            elif path == f"{kinds}/{KIND['name']}" and "watch=true" in query:
                self._answer(200, None)
                ends.wait(PATIENCE)
            elif path == f"{kinds}/{KIND['name']}":
                metadata = {"resourceVersion": "1"}
                self._answer(200, {"kind": "AuthorizationPolicyList", "metadata": metadata, "items": objects})
            else:
                self._answer(404, {"kind": "Status", "code": 404, "reason": "NotFound"})

        def _answer(self, status: int, body: object) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            if body is not None:
                self.wfile.write(json.dumps(body).encode())
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as https:
        https.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server.certificate, server.certificate.with_suffix(".key"))
        https.socket = context.wrap_socket(https.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=https.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield https.server_address[1]
        finally:
            ends.set()
            https.shutdown()
            thread.join()
