"""Authorizers that answer by the headers of each request: `python -m tests.programs.drawn_answers GRPC-PORT HTTP-PORT`.

The header `x-answer-1` is for the gRPC authorizer, and `x-answer-2` for the HTTP authorizer. Its value is `allow`,
`deny`, `unauthorized`, `error` (in the way of each protocol), or `slow` (allow, too late). Without it: deny.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse

GRPC_HEADER, HTTP_HEADER = "x-answer-1", "x-answer-2"
SLOW, _SLOW_SECONDS = "slow", 7.0  # longer than any timeout of a caller
STATUSES = {"allow": 200, "deny": 403, "unauthorized": 401, "error": 500}


def check(message: bytes, context: grpc.ServicerContext) -> bytes:
    """Answer a gRPC check."""
    headers = CheckRequest.FromString(message).attributes.request.http
    named = {header.key: header.raw_value.decode() or header.value for header in headers.header_map.headers}
    word = {**headers.headers, **named}.get(GRPC_HEADER, "deny")
    if word == SLOW:
        time.sleep(_SLOW_SECONDS)
        word = "allow"
    if word == "error":
        context.abort(grpc.StatusCode.INTERNAL, "broken")
    response = CheckResponse(ok_response={})
    if word != "allow":
        response = CheckResponse(status={"code": 7}, denied_response={"status": {"code": STATUSES.get(word, 403)}})
    encoded: bytes = response.SerializeToString()
    return encoded


class Answering(BaseHTTPRequestHandler):
    """The handler of HTTP checks with any method."""

    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        self.rfile.read(int(self.headers.get("content-length", 0)))
        word = self.headers.get(HTTP_HEADER, "deny")
        if word == SLOW:
            time.sleep(_SLOW_SECONDS)
            word = "allow"
        self.send_response_only(STATUSES.get(word, 403))
        self.send_header("content-length", "0")
        self.end_headers()


def serve(grpc_port: int, http_port: int) -> None:
    """Serve until the process is stopped."""
    server = grpc.server(ThreadPoolExecutor(64))
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(check)
    service = grpc.method_handlers_generic_handler("envoy.service.auth.v3.Authorization", {"Check": handler})
    server.add_generic_rpc_handlers((service,))
    server.add_insecure_port(f"127.0.0.1:{grpc_port}")
    server.start()
    ThreadingHTTPServer(("127.0.0.1", http_port), Answering).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
