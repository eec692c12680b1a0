"""What an Envoy says in a CheckRequest, and what is believed of it."""

from __future__ import annotations

from typing import Any

import pytest
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest
from google.protobuf.json_format import MessageToDict, ParseDict

from eastgate.authorizer.checks import Body, ProxyAnswer, ProxyCheck
from eastgate.authorizer.grpc_checks import check_of, reply_of
from eastgate.envoy.authz.health import NOT_SERVING, SERVING, health_methods
from eastgate.envoy.authz.server import read_check, write_reply
from eastgate.envoy.grpc.calls import CallError

WEB = "spiffe://cluster.local/ns/shop/sa/web"


WHOLE = {"x-envoy-auth-partial-body": "false"}


def asked(http: dict[str, Any], **attributes: Any) -> ProxyCheck:
    return check_of(read_check(ParseDict({"attributes": {"request": {"http": http}, **attributes}}, CheckRequest())))


@pytest.mark.parametrize(
    ("principal", "source"),
    [
        (WEB, WEB),
        ("", "anonymous"),
        ("web.shop.example", "anonymous"),
        ("CN=web", "anonymous"),
        ("spiffe://cluster.local", "anonymous"),
        ("sa:shop/web", "anonymous"),
        ("unknown", "anonymous"),
    ],
)
def test_who_calls(principal: str, source: str) -> None:
    assert asked({}, source={"principal": principal}).source == source


def test_the_request() -> None:
    peer = {"address": {"socket_address": {"address": "10.0.0.7", "port_value": 4711}}, "certificate": "-----BEGIN%20x"}
    check = asked(
        {
            "method": "GET",
            "path": "/a?b=c",
            "host": "shop.example:8080",
            "scheme": "https",
            "protocol": "HTTP/2",
            "id": "7",
            "headers": {":method": "GET", ":path": "/a?b=c", "X-One": "1", "x-two": "1,2"},
        },
        source=peer,
        destination={"address": {"socket_address": {"address": "10.0.0.8", "port_value": 443}}},
        tls_session={"sni": "shop.example"},
    )
    assert check == ProxyCheck(
        "anonymous",
        "GET",
        "/a?b=c",
        "shop.example:8080",
        {"x-one": ["1"], "x-two": ["1,2"]},
        joined_headers=frozenset({"x-two"}),
        http_protocol="HTTP/2",
        scheme="https",
        sni="shop.example",
        address="10.0.0.7",
        source_port=4711,
        destination=("10.0.0.8", 443),
        certificate="-----BEGIN x",
        proxy_id="7",
    )


def test_raw_headers_are_told_apart() -> None:
    headers = [{"key": "x-a", "raw_value": "MSwy"}, {"key": "x-a", "raw_value": "Mw=="}, {"key": ":path", "value": "/"}]
    check = asked({"header_map": {"headers": headers}})
    assert (check.headers, check.joined_headers) == ({"x-a": ["1,2", "3"]}, frozenset())


def test_extensions() -> None:
    check = asked({}, context_extensions={"to": "gateway:a/b", "port": "8080", "more": "1"})
    assert (check.to, check.port, check.extensions["more"]) == ("gateway:a/b", 8080, "1")
    assert asked({}, context_extensions={"port": "http"}).port is None


@pytest.mark.parametrize(
    ("extensions", "message"),
    [({}, (None, None)), ({"mcp": "metadata"}, ("tools/call", "read")), ({"mcp": "no"}, (None, None))],
)
def test_what_envoy_read_counts_where_the_operator_says_so(
    extensions: dict[str, str], message: tuple[str | None, str | None]
) -> None:
    metadata = {"envoy.filters.http.mcp": {"method": "tools/call", "params": {"name": "read"}, "id": 1}}
    check = asked({}, context_extensions=extensions, metadata_context={"filter_metadata": metadata})
    assert (check.mcp_method, check.mcp_name) == message


@pytest.mark.parametrize(
    ("http", "body"),
    [
        ({}, None),
        ({"raw_body": "e30=", "size": 2}, Body(b"{}", complete=False)),
        (
            {"raw_body": "e30=", "size": 2, "headers": WHOLE},
            Body(b"{}", complete=True),
        ),
        ({"body": "{}", "size": -1, "headers": WHOLE}, Body(b"{}", complete=True)),
        ({"body": "{}", "size": 3, "headers": WHOLE}, Body(b"{}", complete=False)),
        ({"body": "{}", "size": 2, "headers": {"x-envoy-auth-partial-body": "true"}}, Body(b"{}", complete=False)),
        ({"size": 2, "headers": WHOLE}, None),
    ],
)
def test_bodies(http: dict[str, Any], body: Body | None) -> None:
    check = asked(http)
    assert check.body == body
    assert "x-envoy-auth-partial-body" not in check.headers


def test_answers() -> None:
    allowed = MessageToDict(write_reply(reply_of(ProxyAnswer(True, 200, "1", (("x-user", "ana"),), ("x-role",)))))
    option = {"header": {"key": "x-user", "value": "ana"}, "appendAction": "OVERWRITE_IF_EXISTS_OR_ADD"}
    assert allowed["okResponse"] == {"headers": [option], "headersToRemove": ["x-role"]}
    denied = write_reply(
        reply_of(ProxyAnswer(False, 401, "1", client_headers=(("www-authenticate", "x"),), body=b"no"))
    )
    assert denied.status.code == 7
    assert denied.denied_response.status.code == 401
    assert (denied.denied_response.headers[0].header.key, denied.denied_response.body) == ("www-authenticate", "no")


def test_health_of_services() -> None:
    healthy = True
    check = health_methods(lambda: healthy, {"", "a"}, 0)["/grpc.health.v1.Health/Check"]
    assert check(b"") == SERVING
    healthy = False
    assert check(b"\x0a\x01a") == NOT_SERVING
    with pytest.raises(CallError):
        check(b"\x0a\x01b")
