"""The contents of a CheckRequest, and the parts that Eastgate trusts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest
from google.protobuf.json_format import MessageToDict, ParseDict

from eastgate.cluster.ends import UNKNOWN_CALLER, parse_source
from eastgate.control.authorizer.checks import Body, ProxyAnswer, ProxyCheck, ProxyOptions
from eastgate.control.authorizer.grpc_checks import check_of, reply_of
from eastgate.envoy.authz.server import NOT_SERVING, SERVING, health_methods, read_check, write_reply
from eastgate.envoy.grpc.calls import CallError

WEB = "spiffe://cluster.local/ns/shop/sa/web"


WHOLE = {"x-envoy-auth-partial-body": "false"}


CUTTING = ProxyOptions()


def asked(http: dict[str, Any], proxy: ProxyOptions = CUTTING, **attributes: Any) -> ProxyCheck:
    message = ParseDict({"attributes": {"request": {"http": http}, **attributes}}, CheckRequest())
    return check_of(read_check(message), proxy)


@pytest.mark.parametrize(
    ("principal", "source"),
    [
        (WEB, WEB),
        ("", "anonymous"),
        ("web.shop.example", "anonymous"),
        ("CN=web", "anonymous"),
        ("spiffe://cluster.local", "unknown"),
        (f"{WEB},spiffe://cluster.local/ns/shop/sa/other", "unknown"),
        ("SPIFFE://cluster.local/ns/shop/sa/web", "unknown"),
        (f"{WEB}/", "unknown"),
        ("https://web.shop.example/", "anonymous"),
        ("sa:shop/web", "anonymous"),
        ("unknown", "anonymous"),
    ],
)
def test_who_calls(principal: str, source: str) -> None:
    assert str(asked({}, source={"principal": principal}).source) == source


@pytest.mark.parametrize(
    ("principal", "uris", "source"),
    [
        (WEB, (WEB,), WEB),
        (WEB, (WEB, f"{WEB}-2"), "unknown"),
        (WEB, (WEB, "https://web.example/"), "unknown"),
        (WEB, (), "unknown"),
        ("https://web.example/", ("https://web.example/", WEB), "unknown"),
        ("https://web.example/", ("https://web.example/",), "anonymous"),
        ("web", (), "anonymous"),
        ("web", (WEB,), "unknown"),
        ("", (WEB,), "unknown"),
    ],
)
def test_a_certificate_with_several_uris_may_be_anybodys(principal: str, uris: tuple[str, ...], source: str) -> None:
    assert asked({}, source={"principal": principal, "certificate": quote(certificate(uris))}).source == parse_source(
        source
    )
    assert asked({}, source={"principal": WEB, "certificate": "-----BEGIN%20x"}).source == UNKNOWN_CALLER


def certificate(uris: tuple[str, ...]) -> str:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([])
    names = x509.SubjectAlternativeName([x509.DNSName("web"), *map(x509.UniformResourceIdentifier, uris)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now)
    return builder.add_extension(names, critical=True).sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


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
        UNKNOWN_CALLER,  # by a certificate that cannot be read
        "GET",
        "/a?b=c",
        "shop.example:8080",
        {"x-one": ["1"], "x-two": ["1,2"]},
        unclear_headers=frozenset({"x-two"}),
        http_protocol="HTTP/2",
        scheme="https",
        sni="shop.example",
        address="10.0.0.7",
        source_port=4711,
        destination=("10.0.0.8", 443),
        certificate="-----BEGIN x",
        proxy_id="7",
    )


def test_raw_headers_stay_separate() -> None:
    headers = [{"key": "x-a", "raw_value": "MSwy"}, {"key": "x-a", "raw_value": "Mw=="}, {"key": ":path", "value": "/"}]
    check = asked({"header_map": {"headers": headers}})
    assert (check.headers, check.unclear_headers) == ({"x-a": ["1,2", "3"]}, frozenset())


def test_extensions() -> None:
    check = asked({}, context_extensions={"to": "gateway:a/b", "port": "8080", "more": "1"})
    assert (check.to, check.port, check.extensions["more"]) == ("gateway:a/b", 8080, "1")
    assert asked({}, context_extensions={"port": "http"}).port is None


@pytest.mark.parametrize(
    ("extensions", "message"),
    [({}, None), ({"mcp": "metadata"}, ("tools/call", "read")), ({"mcp": "no"}, None)],
)
def test_the_message_that_envoy_read_counts_only_if_configured(
    extensions: dict[str, str], message: tuple[str, str] | None
) -> None:
    metadata = {"envoy.filters.http.mcp": {"method": "tools/call", "params": {"name": "read"}, "id": 1}}
    check = asked({}, context_extensions=extensions, metadata_context={"filter_metadata": metadata})
    assert check.mcp == message


def test_a_header_that_is_not_shown_is_unknown() -> None:
    assert asked({"headers": {"x-a": "1"}}).shown_headers is None
    proxy = ProxyOptions(shown_headers=frozenset({"x-a", "x-b"}))
    check = asked({"headers": {"x-c": "1"}}, proxy)
    assert check.shown_headers == proxy.shown_headers
    assert check.knows_headers({"x-a", "x-b", "x-c"})
    assert not check.knows_headers({"x-a", "x-role"})
    assert not check.knows_headers(None)


@pytest.mark.parametrize(
    ("http", "cut", "never_cut"),
    [
        ({"raw_body": "e30=", "size": 2}, False, False),
        ({"raw_body": "e30=", "size": 2, "headers": WHOLE}, False, True),
        ({"raw_body": "e30=", "size": 2, "headers": WHOLE | {"content-length": "2"}}, True, True),
        ({"raw_body": "e30=", "size": 2, "headers": WHOLE | {"content-length": "3"}}, False, False),
        ({"raw_body": "e30=", "size": 2, "headers": WHOLE | {"content-length": "2,2"}}, False, False),
        ({"raw_body": "e30=", "size": 2, "headers": {"content-length": "2"}}, False, False),
        ({"body": "{}", "size": -1, "headers": WHOLE}, False, True),
        ({"body": "{}", "size": 3, "headers": WHOLE}, False, False),
        ({"body": "{}", "size": 2, "headers": {"x-envoy-auth-partial-body": "true"}}, False, False),
        ({"body": "{}", "size": 2, "headers": {"x-envoy-auth-partial-body": "false,false"}}, False, False),
    ],
)
def test_bodies(http: dict[str, Any], cut: bool, never_cut: bool) -> None:
    for proxy, complete in ((ProxyOptions(), cut), (ProxyOptions(whole_bodies=True), never_cut)):
        check = asked(http, proxy)
        assert check.body == Body(b"{}", complete=complete)
        assert check.shows_bodies is proxy.whole_bodies
        assert "x-envoy-auth-partial-body" not in check.headers


def test_a_text_may_have_other_bytes_than_are_shown() -> None:
    """Envoy replaces bytes that are not UTF-8 by `!`, unless its configuration packs bodies as bytes."""
    whole = ProxyOptions(whole_bodies=True)
    assert asked({"body": "a!", "size": 2, "headers": WHOLE}, whole).body == Body(b"a!", complete=False)
    assert asked({"raw_body": "YSE=", "size": 2, "headers": WHOLE}, whole).body == Body(b"a!", complete=True)


@pytest.mark.parametrize("http", [{}, {"size": 2, "headers": WHOLE}])
def test_no_body(http: dict[str, Any]) -> None:
    assert asked(http).body is None


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
