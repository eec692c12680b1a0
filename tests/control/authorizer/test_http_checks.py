"""Trust in a check over HTTP: only the headers that, according to the operator, the proxy sets."""

from __future__ import annotations

import pytest

from eastgate.control.authorizer.checks import ProxyAnswer, ProxyOptions
from eastgate.control.authorizer.forwarded import identity_in
from eastgate.control.authorizer.http_checks import HttpOptions, check_of_http, response_of
from eastgate.control.authorizer.http_server import ServedRequest

WEB = "spiffe://cluster.local/ns/shop/sa/web"
OTHER = "spiffe://cluster.local/ns/shop/sa/other"


def request(*headers: tuple[str, str], target: str = "/a?b=c", body: bytes = b"") -> ServedRequest:
    return ServedRequest("GET", target, "1.1", (("host", "shop.example"), *headers), body, None)


@pytest.mark.parametrize(
    ("identity", "headers", "source"),
    [
        (None, [("x-forwarded-client-cert", f"URI={WEB}"), ("x-peer", WEB)], "unknown"),
        ("x-peer", [("x-peer", WEB)], WEB),
        ("x-peer", [], "anonymous"),
        ("x-peer", [("x-peer", "-")], "anonymous"),
        ("x-peer", [("x-peer", "")], "anonymous"),
        ("x-peer", [("x-peer", "spiffe://cluster.local")], "unknown"),
        ("x-peer", [("x-peer", f"{WEB},{OTHER}")], "unknown"),
        ("x-peer", [("x-peer", f"{WEB} ")], "unknown"),
        ("x-peer", [("x-peer", "CN=web")], "unknown"),
        ("x-peer", [("x-peer", ""), ("x-peer", WEB)], "unknown"),
        ("x-peer", [("x-peer", WEB), ("x-peer", OTHER)], "unknown"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", f"By=x;Hash=ab;URI={WEB}")], WEB),
        ("x-forwarded-client-cert", [], "anonymous"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", f"URI={WEB};URI={OTHER}")], "unknown"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", f'x=",By=x;Hash=ab;URI={WEB}')], "unknown"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", "")], "unknown"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", "By=x;Hash=ab")], "unknown"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", "By=x;Hash=ab;URI=")], "anonymous"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", "URI=https://web.example/")], "unknown"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", f"URI={WEB}")] * 2, "unknown"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", f"URI={OTHER},By=x;URI={WEB}")], WEB),
    ],
)
def test_who_calls(identity: str | None, headers: list[tuple[str, str]], source: str) -> None:
    check = check_of_http(request(*headers), HttpOptions(identity=identity), ProxyOptions())
    assert check is not None
    assert str(check.source) == source


@pytest.mark.parametrize(
    ("value", "uri"),
    [
        ("", None),
        (f'By=x;Subject="CN=a,URI={OTHER}";URI={WEB}', WEB),
        (f'Subject="a\\";URI={OTHER}";URI={WEB}', WEB),
        (f'Subject="never closed;URI={WEB}', None),
        (f'uri="{WEB}"', WEB),
        ('By=x;URI=""', ""),
        (f"URI={WEB},By=y", None),
        (f"By=x;broken;URI={WEB}", None),
        (f"URI={WEB},", None),
    ],
)
def test_forwarded_certificates(value: str, uri: str | None) -> None:
    assert identity_in(value) == uri


def test_only_received_headers_are_known() -> None:
    sent = request(("x-a", "1"), ("x-a", "2"), ("x-b", "1,2"), ("content-length", "0"), ("upgrade", "websocket"))
    check = check_of_http(sent, HttpOptions(), ProxyOptions())
    assert check is not None
    assert check.headers == {"x-a": ["1", "2"], "x-b": ["1,2"], "upgrade": ["websocket"]}
    assert check.shown_headers == frozenset()
    assert "x-b" in check.unclear_headers
    assert check.unclear_headers.isdisjoint({"x-a", "upgrade"})
    some = check_of_http(sent, HttpOptions(), ProxyOptions(shown_headers=frozenset({"x-c"})))
    assert some is not None
    assert some.shown_headers == frozenset({"x-c"})


@pytest.mark.parametrize("name", ["content-length", "transfer-encoding", "te", "connection", "x-envoy-internal"])
def test_hop_headers_are_unknown_for_the_client(name: str) -> None:
    check = check_of_http(request((name, "0")), HttpOptions(all_headers=True), ProxyOptions())
    assert check is not None
    assert name not in check.headers
    assert name in check.unclear_headers


def test_nginx_shows_no_upgrades() -> None:
    sent = request(("x-original-method", "GET"), ("x-original-uri", "/"))
    check = check_of_http(sent, HttpOptions(original=True, all_headers=True), ProxyOptions(whole_bodies=True))
    assert check is not None
    assert check.may_hide_message


def test_headers_of_the_proxy_are_not_those_of_the_client() -> None:
    options = HttpOptions(identity="x-peer", to="x-to", address="x-address", all_headers=True)
    headers = (("x-peer", WEB), ("x-to", "gateway:a/b"), ("x-address", "10.0.0.1"), ("x-more", "1"))
    check = check_of_http(request(*headers), options, ProxyOptions())
    assert check is not None
    assert (check.to, check.address, check.headers, check.shown_headers) == (
        "gateway:a/b",
        "10.0.0.1",
        {"x-more": ["1"]},
        None,
    )
    assert check.unclear_headers >= options.own  # a value of the client there reaches the application
    without = check_of_http(request(*headers), HttpOptions(), ProxyOptions())
    assert without is not None
    assert (without.to, without.address) == (None, None)


@pytest.mark.parametrize(
    ("options", "sent", "path"),
    [
        (HttpOptions(), request(), "/a?b=c"),
        (HttpOptions(prefix="/check"), request(target="/check/a"), "/a"),
        (HttpOptions(prefix="/check"), request(target="/check"), "/"),
        (HttpOptions(prefix="/check"), request(target="/other"), None),
        (HttpOptions(original=True), request(("x-original-method", "PUT"), ("x-original-uri", "/z")), "/z"),
        (HttpOptions(original=True), request(), None),
        (HttpOptions(), request(("host", "another.example")), None),
        (HttpOptions(to="x-to"), request(("x-to", "pod:a/b"), ("x-to", "pod:a/c")), None),
    ],
)
def test_which_request_it_is(options: HttpOptions, sent: ServedRequest, path: str | None) -> None:
    check = check_of_http(sent, options, ProxyOptions())
    assert (None if check is None else check.path) == path


@pytest.mark.parametrize("partial", [[], ["true"], ["false"], ["false", "true"]])
@pytest.mark.parametrize("whole_bodies", [True, False])
def test_a_body_is_whole_if_the_proxy_marks_it_and_never_cuts_bodies(partial: list[str], whole_bodies: bool) -> None:
    headers = [("x-envoy-auth-partial-body", value) for value in partial]
    sent = request(*headers, ("content-length", "2"), body=b"{}")
    check = check_of_http(sent, HttpOptions(), ProxyOptions(whole_bodies=whole_bodies))
    assert check is not None
    assert check.body is not None
    assert check.body.complete is (whole_bodies and partial == ["false"])


def test_answers() -> None:
    allowed = response_of(ProxyAnswer(True, 200, "1", (("x-user", "ana"),), ("x-role", "x-eastgate-a")))
    assert allowed.status == 200
    assert allowed.headers == (("x-user", "ana"), ("x-envoy-auth-headers-to-remove", "x-role,x-eastgate-a"))
    denied = response_of(ProxyAnswer(False, 401, "1", client_headers=(("www-authenticate", "x"),), body=b"no"))
    assert (denied.status, denied.headers, denied.body) == (401, (("www-authenticate", "x"),), b"no")
