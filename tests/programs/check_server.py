"""A gRPC authorizer that answers by the path of each request: `python -m tests.programs.check_server PORT [FOLDER]`.

    /allow   /deny   /headers   /append   /remove   /query   /host   /slow   /garbage   /huge   /contradiction   /abort
    /status/CODE   /echo (the request as text, in a header)   /count (the number of questions, in a header)

With a folder it uses the TLS key and certificates in the folder, and asks clients for a certificate.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse
from google.protobuf.json_format import MessageToJson

ALLOWED = CheckResponse(ok_response={})


def _with_header(name: str, value: str, *, append: bool = False) -> CheckResponse:
    response = CheckResponse()
    option = response.ok_response.headers.add()
    option.header.key, option.header.value = name, value
    option.append.value = append
    return response


def _denied(code: int, body: str = "no entry") -> CheckResponse:
    response = CheckResponse()
    response.status.code = 7
    response.denied_response.status.code = code
    response.denied_response.body = body
    option = response.denied_response.headers.add()
    option.header.key, option.header.value = "WWW-Authenticate", "Bearer"
    return response


def _written(response: CheckResponse) -> bytes:
    written: bytes = response.SerializeToString()
    return written


class Behaviour:
    """The answers by the path of each question."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        self.asked += 1
        request = CheckRequest.FromString(message)
        path = request.attributes.request.http.path.partition("?")[0]
        answers: dict[str, Callable[[], CheckResponse]] = {
            "/allow": lambda: ALLOWED,
            "/deny": lambda: _denied(401),
            "/headers": lambda: _with_header("X-User", "erin"),
            "/append": lambda: _with_header("x-team", "blue", append=True),
            "/remove": lambda: CheckResponse(ok_response={"headers_to_remove": ["X-Secret"]}),
            "/query": lambda: CheckResponse(ok_response={"query_parameters_to_remove": ["token"]}),
            "/host": lambda: _with_header(":path", "/admin"),
            "/huge": lambda: _with_header("x-huge", "x" * 100_000),
            "/echo": lambda: _with_header("x-echo", MessageToJson(request, indent=None)),
            "/count": lambda: _with_header("x-count", str(self.asked)),
        }
        if path == "/slow":
            time.sleep(1.5)
            return _written(ALLOWED)
        if path == "/garbage":
            return b"\xff\xff\xff"
        if path == "/contradiction":
            response = _denied(403)
            response.status.code = 0
            return _written(response)
        if path == "/abort":
            context.abort(grpc.StatusCode.INTERNAL, "broken")
        if path.startswith("/status/"):
            return _written(_denied(int(path.rpartition("/")[2])))
        return _written(answers.get(path, lambda: _denied(403))())


def serve(port: int, folder: Path | None) -> None:
    """Serve until the process is stopped."""
    server = grpc.server(ThreadPoolExecutor(8))
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(Behaviour())
    service = grpc.method_handlers_generic_handler("envoy.service.auth.v3.Authorization", {"Check": handler})
    server.add_generic_rpc_handlers((service,))
    address = f"127.0.0.1:{port}"
    if folder is None:
        server.add_insecure_port(address)
    else:
        key, chain, roots = ((folder / name).read_bytes() for name in ("key.pem", "chain.pem", "roots.pem"))
        credentials = grpc.ssl_server_credentials([(key, chain)], roots, require_client_auth=True)
        server.add_secure_port(address, credentials)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
