"""External authorizers for CUSTOM policies: by gRPC and by HTTP, one that allows and one that denies."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import grpc
from envoy.service.auth.v3.external_auth_pb2 import CheckResponse

from tests.programs import free_port

_DENIED = 7  # PERMISSION_DENIED of gRPC
_STATUSES = {"allow": 200, "deny": 403}


class Authorizers:
    """Running authorizers. `port` returns the port of one; the port of an authorizer with errors has no listener."""

    def __init__(self) -> None:
        self._grpc = {verdict: self._serve_grpc(verdict) for verdict in _STATUSES}
        self._http = {
            verdict: ThreadingHTTPServer(("127.0.0.1", 0), _handler(_STATUSES[verdict])) for verdict in _STATUSES
        }
        self._nobody = free_port()
        self._threads = [threading.Thread(target=server.serve_forever) for server in self._http.values()]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._http.values():
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()
        for grpc_server, _ in self._grpc.values():
            grpc_server.stop(grace=None).wait()

    def port(self, verdict: str, *, by_grpc: bool) -> int:
        """Return the port on loopback of an authorizer with this answer: allow, deny or error."""
        if verdict not in _STATUSES:
            return self._nobody
        return self._grpc[verdict][1] if by_grpc else self._http[verdict].server_port

    @staticmethod
    def _serve_grpc(verdict: str) -> tuple[grpc.Server, int]:
        response = CheckResponse()
        response.status.SetInParent()  # a response without a status is an error for a connection, but not for a request
        response.status.code = 0 if verdict == "allow" else _DENIED
        written: bytes = response.SerializeToString()
        server = grpc.server(ThreadPoolExecutor(2))
        method: Any = grpc.unary_unary_rpc_method_handler(lambda _request, _context: written)
        service = grpc.method_handlers_generic_handler("envoy.service.auth.v3.Authorization", {"Check": method})
        server.add_generic_rpc_handlers((service,))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        return server, port


def _handler(answer: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers every request in the same way, with any method."""

        protocol_version = "HTTP/1.1"

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self._answer
            raise AttributeError(name)

        def _answer(self) -> None:
            self.send_response(answer)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 - as the library calls it
            """Log nothing."""

    return Handler
