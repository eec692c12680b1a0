"""An external authorizer, by gRPC and by HTTP: `python -m tests.programs.agent_authorizer FOLDER GRPC-PORT HTTP-PORT`.

The file FOLDER/behaviour selects its behaviour:
    - allow   deny   deny-in-detail   slow   hang-up   garbage   huge
    - contradict   answers both yes and no
    - steer        allows, and tries to send the request elsewhere
    - small        allows calls with arguments below 100, if it gets the body
    - pass         allows, and passes on the header `authorization`

FOLDER/asked gets a line of JSON for every question: the protocol, caller, path, tool and `authorization`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse

SECRET = "policy fraud-check says no"  # noqa: S105 - the reason for a denied client
_SLOW_SECONDS = 20.0  # longer than any timeout of a caller
_STEERING = {"x-eastgate-destination": "nowhere", ":path": "/admin", "host": "notes.example"}


class Authorizer:
    """An authorizer that answers as the file demands, and records the questions."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    @property
    def behaviour(self) -> str:
        return (self._folder / "behaviour").read_text(encoding="utf-8").strip()

    def note(self, protocol: str, principal: str, headers: Mapping[str, str], path: str, body: bytes) -> bool:
        """Record a question, and return whether its arguments are small."""
        try:
            message = json.loads(body)
            tool, arguments = message["params"].get("name"), message["params"].get("arguments") or {}
        except (ValueError, KeyError, TypeError):
            tool, arguments = None, {}
        line = {"protocol": protocol, "principal": principal, "path": path, "tool": tool}
        line["authorization"] = headers.get("authorization", "")
        with self._lock, (self._folder / "asked").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return all(value < 100 for value in arguments.values() if isinstance(value, int))

    # gRPC

    def check(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        """Answer a Check request of Envoy's protocol."""
        asked = CheckRequest.FromString(message).attributes
        http = asked.request.http
        body = http.raw_body or http.body.encode()
        small = self.note("gRPC", asked.source.principal, http.headers, http.path, body)
        behaviour = self.behaviour
        match behaviour:
            case "slow":
                time.sleep(_SLOW_SECONDS)
            case "hang-up":
                context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
            case "garbage":
                return b"\xff\xff\xff"
        written: bytes = self._response(behaviour, small, http.headers["authorization"]).SerializeToString()
        return written

    def _response(self, behaviour: str, small: bool, token: str) -> CheckResponse:
        response = CheckResponse(ok_response={})
        denies = behaviour in ("deny", "deny-in-detail", "contradict") or (behaviour == "small" and not small)
        headers = _STEERING if behaviour == "steer" else {"x-huge": "x" * 200_000} if behaviour == "huge" else {}
        if behaviour == "pass":
            headers = {"authorization": token}
        for name, value in headers.items():
            option = response.ok_response.headers.add()
            option.header.key, option.header.value = name, value
        if denies:
            response.status.code = 0 if behaviour == "contradict" else 7
            response.denied_response.status.code = 403
            response.denied_response.body = SECRET
        return response

    # HTTP

    def answer(self, path: str, sent: Mapping[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for an HTTP check."""
        small = self.note("HTTP", sent.get("x-eastgate-source", ""), sent, path, body)
        match self.behaviour:
            case "slow":
                time.sleep(_SLOW_SECONDS)
            case "hang-up":
                raise ConnectionError
            case "garbage":
                return 0, {}, b"\xff\xff HTTP/9 yes\r\n\r\n"
            case "huge":
                return 200, {"x-huge": "x" * 200_000}, b""
            case "contradict":
                return 204, {}, b""
            case "steer":
                return 200, {name: value for name, value in _STEERING.items() if name != ":path"}, b""
            case "deny" | "deny-in-detail":
                return 403, {"content-type": "text/plain"}, SECRET.encode()
            case "small" if not small:
                return 403, {}, b""
            case "pass":
                return 200, {"authorization": sent.get("authorization", "")}, b""
        return 200, {}, b""


class Handler(BaseHTTPRequestHandler):
    """The handler of HTTP checks."""

    authorizer: Authorizer
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            status, headers, content = self.authorizer.answer(self.path, dict(self.headers), body)
        except ConnectionError:
            self.close_connection = True
            return
        if status == 0:
            self.wfile.write(content)
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - as the class in the library has it

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 - as the library calls it
        """Log nothing."""


class QuietServer(ThreadingHTTPServer):
    """A server that does not report clients that go away."""

    def handle_error(self, *_: object) -> None:
        """Report nothing."""


def serve(folder: Path, grpc_port: int, http_port: int) -> None:
    """Serve until the process is stopped."""
    authorizer = Handler.authorizer = Authorizer(folder)
    server = grpc.server(ThreadPoolExecutor(16))
    handler: Any = grpc.unary_unary_rpc_method_handler(authorizer.check)
    service = grpc.method_handlers_generic_handler("envoy.service.auth.v3.Authorization", {"Check": handler})
    server.add_generic_rpc_handlers((service,))
    server.add_insecure_port(f"127.0.0.1:{grpc_port}")
    server.start()
    QuietServer(("127.0.0.1", http_port), Handler).serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
