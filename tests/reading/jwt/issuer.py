"""An issuer that answers over HTTP on loopback with any content that a test sets."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ABOUT = "/.well-known/openid-configuration"


class Issuer(ThreadingHTTPServer):
    """`answers` maps a path to a document, to raw bytes, to pieces that are sent slowly, or to a status
    with headers.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, object] = {}
        self.asked: Counter[str] = Counter()
        self.pause = threading.Event()
        self.pause.set()
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def publish(self, *jwks: object) -> None:
        """Publish these keys, as an honest issuer does."""
        self.answers[ABOUT] = {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}
        self.answers["/jwks"] = {"keys": list(jwks)}

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that closes the connection, because some tests do it."""


class _Handler(BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        self.server.asked[self.path] += 1
        self.server.pause.wait(5)
        answer = self.server.answers.get(self.path, (404, {}))
        status, headers = answer if isinstance(answer, tuple) else (200, {"Content-Type": "application/json"})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in _pieces(answer):
            self.wfile.write(piece)
            time.sleep(0.02 if isinstance(answer, list) else 0)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in http.server
        pass


def _pieces(answer: object) -> list[bytes]:
    match answer:
        case tuple():
            return []
        case list():
            return answer
        case bytes():
            return [answer]
    return [json.dumps(answer).encode()]


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[Issuer]:
    with Issuer() as issuer:
        if tls is not None:
            issuer.scheme = "https"
            issuer.socket = tls.wrap_socket(issuer.socket, server_side=True)
        thread = threading.Thread(target=issuer.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield issuer
        finally:
            issuer.pause.set()
            issuer.shutdown()
            thread.join()
