"""A third-party Envoy sends checks over both protocols, and applies the decisions of the engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.authorizer.proxies import Application, Authorizer, Envoy, running_application
from tests.control.authorizer.test_deciding import DUPLICATE, message
from tests.control.authorizer.worlds import MANIFESTS

GRPC = ("grpc", "grpc-joined", "grpc-unix")
HTTP = ("http", "http-unix")
ALL = GRPC + HTTP
JSON = (("content-type", "application/json"), ("accept", "application/json, text/event-stream"))


class Setting:
    def __init__(self, authorizer: Authorizer, envoy: Envoy, application: Application) -> None:
        self.authorizer, self.envoy, self.application = authorizer, envoy, application


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    folder: Path = tmp_path_factory.mktemp("a")
    with (
        running_application() as application,
        Authorizer(folder, MANIFESTS) as authorizer,
        Envoy(folder, authorizer, application) as envoy,
    ):
        yield Setting(authorizer, envoy, application)


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize(
    ("listener", "host", "account", "path", "status"),
    [
        *((name, "chosen.example", "shop/web", "/reviews/1", 200) for name in GRPC),
        *((name, "chosen.example", "shop/web", "/admin", 403) for name in GRPC),
        *((name, "chosen.example", "shop/cart", "/reviews/1", 403) for name in GRPC),
        *((name, "chosen.example", None, "/reviews/1", 403) for name in GRPC),
        ("pod", "reviews", "shop/web", "/reviews/1", 200),
        ("pod", "toys.example", "shop/web", "/admin", 401),  # the Gateway has no credential, so the pod does not matter
        ("pod", "reviews", "shop/web", "/reviews/../admin", 400),
        ("http-to", "reviews", "shop/web", "/reviews/../admin", 400),
        ("pod", "reviews", "shop/web", "/reviews%2f..%2fadmin", 400),
        ("grpc", "unknown.example", "shop/web", "/reviews/1", 403),
        ("http-to", "reviews", "shop/web", "/reviews/1", 200),
        ("http-to", "reviews", "shop/web", "/admin", 403),
        ("http-to", "reviews", "shop/cart", "/reviews/1", 403),
        ("http-to", "reviews", None, "/reviews/1", 403),
        ("http", "reviews", "shop/web", "/reviews/1", 403),
    ],
)
def test_policies_on_pods(
    setting: Setting, listener: str, host: str, account: str | None, path: str, status: int, http2: bool
) -> None:
    before = setting.application.requests
    forged = (("x-verified-peer", "spiffe://cluster.local/ns/shop/sa/web"), ("x-authz-to", "gateway:toys/store"))
    response = setting.envoy.call(listener, account, path, host=host, http2=http2, headers=forged)
    assert response.status == status
    assert setting.application.requests - before == (status == 200)


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("listener", ALL)
def test_tools(setting: Setting, listener: str, http2: bool) -> None:
    def call(account: str, body: bytes) -> int:
        response = setting.envoy.call(
            listener, account, "/mcp", host="mcp.example", method="POST", headers=JSON, body=body, http2=http2
        )
        if response.status == 403:
            assert json.loads(response.body)["id"] == 7
        return response.status

    assert call("prod/agent", message("tools/call", "read")) == 200
    assert call("prod/agent", message("tools/call", "write")) == 403
    assert call("prod/stranger", message("tools/call", "read")) == 403
    assert call("prod/agent", DUPLICATE) == 400
    padded = message("tools/call", "read", padding="x" * 5_000)
    assert setting.envoy.call(
        listener, "prod/agent", "/mcp", host="mcp.example", method="POST", headers=JSON, body=padded, http2=http2
    ).status in (403, 413)  # over HTTP/2 Envoy always sends only a part of it


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("listener", ALL)
def test_api_keys(setting: Setting, listener: str, http2: bool) -> None:
    def call(*headers: tuple[str, str]) -> tuple[int, dict[str, str], dict[str, str]]:
        response = setting.envoy.call(listener, None, "/", host="toys.example", headers=headers, http2=http2)
        return response.status, dict(response.headers), response.seen if response.status == 200 else {}

    status, _, seen = call(
        ("authorization", "APIKEY KEY-OF-ALICE"), ("x-eastgate-decision", "forged"), ("x-eastgate-other", "forged")
    )
    assert status == 200
    assert "x-eastgate-other" not in seen
    assert seen["x-eastgate-decision"] != "forged"
    record = setting.authorizer.record(seen["x-eastgate-decision"])
    assert (record["verdict"], record["policy"]) == ("allow", "AuthPolicy/toys/toystore")
    status, headers, _ = call(("authorization", "APIKEY wrong"))
    assert status == 401
    assert "www-authenticate" in headers
    assert setting.authorizer.record(headers["x-eastgate-decision"])["status"] == 401
    assert call()[0] == 401


def test_a_header_that_came_twice_is_no_way_round_a_rule(setting: Setting) -> None:
    """Its values are joined by commas and cannot be separated, so the header is unknown."""
    response = setting.envoy.call(
        "grpc-joined", "prod/agent", "/mcp", host="mcp.example", headers=(("mcp-session-id", "a"), ("x-a", "1,2"))
    )
    assert response.status == 200


def test_metrics(setting: Setting) -> None:
    setting.envoy.call("grpc", "shop/web", "/reviews/1", host="chosen.example")
    status, text = setting.authorizer.fetch("/metrics")
    assert status == 200
    assert 'eastgate_checks_total{protocol="grpc",status="200",verdict="allow"}' in text
    assert "eastgate_check_seconds_bucket" in text
