"""Requests of an attacker for which a proxy might check one request and forward another. The proxies are real."""

from __future__ import annotations

import http.client
import select
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.attacks import paths
from tests.attacks.application import Arrived
from tests.control.authorizer.proxies import Application, Authorizer, Envoy, running_application
from tests.control.authorizer.test_deciding import LOOKALIKE, message
from tests.control.authorizer.worlds import MANIFESTS, POD
from tests.patience import PATIENCE

AGENT = "prod/agent"
JSON = (("content-type", "application/json"), ("accept", "application/json, text/event-stream"))
READ, WRITE = message("tools/call", "read"), message("tools/call", "write")
PROTOCOLS = ("grpc", "http")

API_ONLY = f"""{POD}
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: api, namespace: shop}}
spec:
  enforcementLevel: APPLICATION
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{app: reviews}}}}}}]
  action: ALLOW
  rules: [{{applicationAttributes: {{paths: [/api/*]}}}}]
"""
ALL_BUT_CART = f"""{POD}
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: cart, namespace: shop}}
spec:
  enforcementLevel: APPLICATION
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{app: reviews}}}}}}]
  action: DENY
  rules: [{{authorizationSource: {{serviceAccounts: [cart]}}}}]
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: others, namespace: shop}}
spec:
  enforcementLevel: APPLICATION
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{app: reviews}}}}}}]
  action: ALLOW
  rules: [{{}}]
"""
ALL_BUT_GUESTS = f"""{POD}
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: guests, namespace: shop}}
spec:
  selector: {{matchLabels: {{app: reviews}}}}
  action: DENY
  rules: [{{when: [{{key: "request.headers[x-role]", values: [guest]}}]}}]
"""


@dataclass
class Setting:
    authorizer: Authorizer
    envoy: Envoy
    application: Application

    def send(self, listener: str, account: str | None, data: bytes, *, is_unfinished: bool = False) -> int:
        """Send bytes; return the status, or 0 if the application received an unfinished request."""
        before = self.application.requests
        with self.envoy.connection(listener, account) as connection:
            connection.sendall(data)
            if is_unfinished:
                self._wait(connection, before)
                if self.application.requests > before:
                    return 0
            response = http.client.HTTPResponse(connection)
            response.begin()
            return response.status

    def _wait(self, connection: ssl.SSLSocket, before: int) -> None:
        """Wait until an answer arrives, or the application has a request."""
        end = time.monotonic() + PATIENCE
        while self.application.requests == before:
            if connection.pending() or select.select([connection], [], [], 0.02)[0]:
                return
            assert time.monotonic() < end, "neither an answer nor a request came"


@contextmanager
def running(
    folder: Path, manifests: str, *proxies: str, trusted: str = "x-verified-peer", **envoy: object
) -> Iterator[Setting]:
    with (
        running_application() as application,
        Authorizer(folder, manifests, proxies=proxies, trusted=trusted) as authorizer,
        Envoy(folder, authorizer, application, **envoy) as proxy,  # type: ignore[arg-type]
    ):
        yield Setting(authorizer, proxy, application)


# Paths


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    with running(tmp_path_factory.mktemp("a"), API_ONLY, "--all-headers") as setting:
        yield setting


SPELLINGS = [
    *(path for _, path in paths.spellings()),
    *(path for path, _, _ in paths.TABLE),
    *paths.ODD,
    *paths.DOTS_WITH_PARAMETERS,
    *paths.REFUSED,
    *("/secret/../api/x", "/secret/%2e%2e/api/x", "/secret//../api/x", "/secret\\..\\api\\x", "/secret/..;x/api/x"),
]


@pytest.mark.parametrize("listener", ["grpc", "http-to"])
def test_an_application_gets_the_path_that_was_decided(api: Setting, listener: str) -> None:
    """An application without normalisation reads the first segment; others read it in one of these ways."""
    outside, wrong, passed = paths.outside("/api/"), [], 0
    for path in SPELLINGS:
        before = api.application.requests
        if not path.isascii() or " " in path:
            continue
        status = api.envoy.call(listener, None, path, host="chosen.example").status
        if api.application.requests == before:
            assert status in (400, 403, 404), path
            continue
        passed += 1
        target = api.application.target
        problem = outside(Arrived("1.1", "GET", target, ()))
        if problem is not None or not target.startswith("/api/"):
            wrong.append((path, problem))
    assert not wrong
    assert passed > 10


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("listener", ["grpc", "http-to"])
def test_a_path_that_normalisation_would_change_is_a_bad_request(api: Setting, listener: str, http2: bool) -> None:
    for path in ("/secret/../api/x", "/secret/%2e%2e/api/x", "/api//../x", "/secret\\..\\api\\x", "/api//x"):
        assert api.envoy.call(listener, None, path, host="chosen.example", http2=http2).status == 400, path


NORMALIZING = """
          normalize_path: true
          merge_slashes: true
          path_with_escaped_slashes_action: KEEP_UNCHANGED
"""


@pytest.mark.parametrize("options", [(), ("--normalized-paths",)], ids=["as shown", "stated"])
def test_an_envoy_that_normalises_needs_no_option(tmp_path: Path, options: tuple[str, ...]) -> None:
    with running(tmp_path, API_ONLY, "--all-headers", *options, manager=NORMALIZING) as setting:
        for path, status, _ in paths.TABLE:
            for listener in ("grpc", "http-to"):
                assert setting.envoy.call(listener, None, path, host="chosen.example").status == status, path


# Identities

FORWARDING = """
          forward_client_cert_details: APPEND_FORWARD
          set_current_client_cert_details: {subject: true, uri: true}
"""


def test_a_caller_cannot_make_its_certificate_unclear(tmp_path: Path) -> None:
    name = "x-forwarded-client-cert"
    with running(tmp_path, ALL_BUT_CART, "--all-headers", trusted=name, manager=FORWARDING) as setting:

        def call(account: str | None, *headers: tuple[str, str]) -> int:
            return setting.envoy.call("http-to", account, "/", host="reviews", headers=headers).status

        assert (call("shop/web"), call(None), call("shop/cart")) == (200, 200, 403)
        web = "URI=spiffe://cluster.local/ns/shop/sa/web"
        for value in (
            'x="',
            'x="\\',
            f'{web};x="',
            f'{web},y="',
            "=",
            ";",
            ",",
            web,
            '"',
            f'x="{web}',
            f'{web}"',
            "\\",
        ):
            assert call("shop/cart", (name, value)) == 403, value
            assert call("shop/cart", (name, value), (name, value)) == 403, value


# Bodies


@pytest.fixture(scope="module")
def cutting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    with running(tmp_path_factory.mktemp("a"), MANIFESTS, "--all-headers", cuts=True) as setting:
        yield setting


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    with running(tmp_path_factory.mktemp("a"), MANIFESTS, "--all-headers", "--whole-bodies") as setting:
        yield setting


def head(method: str, *headers: str, host: str = "mcp.example") -> bytes:
    lines = [f"{method} /mcp HTTP/1.1", f"host: {host}", "content-type: application/json", *headers, "", ""]
    return "\r\n".join(lines).encode()


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


CHUNKED = "transfer-encoding: chunked"


@pytest.mark.parametrize("listener", PROTOCOLS)
def test_a_second_message_behind_the_bytes_that_are_shown(cutting: Setting, listener: str) -> None:
    shown = READ + b" " * (4096 - len(READ))
    sent = head("POST", CHUNKED) + chunk(shown)  # and chunk(WRITE) behind it, once it has passed
    assert cutting.send(listener, AGENT, sent, is_unfinished=True) == 403


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
def test_the_content_length_of_the_client_proves_a_whole_body(cutting: Setting, http2: bool) -> None:
    def call(listener: str, body: bytes, *, with_length: bool = True) -> int:
        length = (("content-length", str(len(body))),) if http2 and with_length else ()
        headers = (*JSON, *length)
        return cutting.envoy.call(
            listener, AGENT, "/mcp", host="mcp.example", method="POST", headers=headers, body=body, http2=http2
        ).status

    assert call("grpc", READ) == 200
    assert call("grpc", WRITE) == 403
    assert call("http", READ) == 403  # the length of the client is not shown
    if http2:
        assert call("grpc", READ, with_length=False) == 403


@pytest.mark.parametrize("listener", PROTOCOLS)
def test_bodies_of_a_proxy_that_never_cuts_them(whole: Setting, listener: str) -> None:
    assert whole.send(listener, AGENT, head("POST", CHUNKED) + chunk(READ) + b"0\r\n\r\n") == 200
    assert whole.send(listener, AGENT, head("POST", CHUNKED) + chunk(WRITE) + b"0\r\n\r\n") == 403
    assert whole.send(listener, AGENT, head("POST", CHUNKED) + chunk(READ) + chunk(WRITE) + b"0\r\n\r\n") == 400
    large = READ + b" " * 4096 + WRITE
    assert whole.send(listener, AGENT, head("POST", CHUNKED) + chunk(large) + b"0\r\n\r\n") == 413
    response = whole.envoy.call(
        listener, AGENT, "/mcp", host="mcp.example", method="POST", headers=JSON, body=large, http2=True
    )
    assert response.status in (403, 413)


UPGRADE = (
    "connection: upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: " + "x" * 22 + "==",
)


@pytest.mark.parametrize("listener", PROTOCOLS)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_messages_in_requests_that_seem_to_bring_none(whole: Setting, listener: str, method: str) -> None:
    session = "mcp-session-id: 7"
    before = whole.application.requests
    length = f"content-length: {len(WRITE)}"
    assert whole.send(listener, AGENT, head(method, session, length) + WRITE) == 400
    assert whole.send(listener, AGENT, head(method, session, CHUNKED) + chunk(WRITE) + b"0\r\n\r\n") == 400
    assert whole.send(listener, AGENT, head(method, session, "x-http-method-override: POST")) in (400, 403)
    headers = (("mcp-session-id", "7"),)
    response = whole.envoy.call(
        listener, AGENT, "/mcp", host="mcp.example", method=method, headers=headers, body=WRITE, http2=True
    )
    assert response.status == 400
    if method == "GET":
        assert whole.send(listener, AGENT, head(method, session, *UPGRADE)) == 403
    assert whole.application.requests == before
    assert whole.send(listener, AGENT, head(method, session)) == 200
    assert whole.send(listener, AGENT, head(method, session, "content-length: 0")) == 200


@pytest.mark.parametrize("listener", PROTOCOLS)
def test_a_proxy_that_may_not_show_bodies_hides_them(cutting: Setting, listener: str) -> None:
    assert cutting.send(listener, AGENT, head("GET")) == 403
    assert cutting.send(listener, "prod/stranger", head("GET")) == 403


# Headers


ALLOWED = "              allowed_headers: {patterns: [{exact: x-a}]}"
DISALLOWED = "              disallowed_headers: {patterns: [{exact: x-role}]}"


@pytest.mark.parametrize("hiding", [ALLOWED, DISALLOWED], ids=["allowed", "disallowed"])
def test_a_header_that_the_proxy_does_not_show_is_unknown(tmp_path: Path, hiding: str) -> None:
    with running(tmp_path, ALL_BUT_GUESTS, "--shown-header", "X-A", allowed=hiding) as setting:
        for headers in ((("x-role", "guest"),), (("x-role", "user"),), ()):
            assert setting.envoy.call("grpc", None, "/", host="chosen.example", headers=headers).status == 403
        assert setting.application.requests == 0


@pytest.mark.parametrize("options", [(), ("--shown-header", "x-role")])
def test_a_header_that_is_shown_is_known(tmp_path: Path, options: tuple[str, ...]) -> None:
    with running(tmp_path, ALL_BUT_GUESTS, *options) as setting:

        def call(*headers: tuple[str, str]) -> int:
            return setting.envoy.call("grpc", None, "/", host="chosen.example", headers=headers).status

        assert (call(("x-role", "guest")), call(("x-role", "user")), call()) == (403, 200, 200)


# Messages that the proxy reads


def test_a_message_that_the_proxy_and_the_server_read_otherwise(whole: Setting) -> None:
    def call(body: bytes) -> int:
        return whole.envoy.call(
            "grpc", AGENT, "/mcp", host="read.example", method="POST", headers=JSON, body=body
        ).status

    assert (call(READ), call(WRITE), call(LOOKALIKE)) == (200, 403, 400)
    assert call(b"[" + READ + b"," + READ + b"]") == 400
    assert call(message("tools/list")) == 200
