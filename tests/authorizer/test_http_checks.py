"""What is believed of a check over HTTP is what the operator says that the proxy sets, and nothing else."""

from __future__ import annotations

import pytest

from eastgate.authorizer.checks import ProxyAnswer
from eastgate.authorizer.forwarded_certificates import identities_in
from eastgate.authorizer.http_checks import HttpOptions, check_of_http, response_of
from eastgate.authorizer.http_server import ServedRequest

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
        ("x-peer", [("x-peer", "spiffe://cluster.local")], "anonymous"),
        ("x-peer", [("x-peer", f"{WEB},{OTHER}")], "anonymous"),
        ("x-peer", [("x-peer", WEB), ("x-peer", OTHER)], "unknown"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", f"By=x;Hash=ab;URI={WEB}")], WEB),
        ("x-forwarded-client-cert", [], "anonymous"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", f"URI={WEB};URI={OTHER}")], "anonymous"),
        ("x-forwarded-client-cert", [("x-forwarded-client-cert", f"URI={OTHER},By=x;URI={WEB}")], WEB),
    ],
)
def test_who_calls(identity: str | None, headers: list[tuple[str, str]], source: str) -> None:
    check = check_of_http(request(*headers), HttpOptions(identity=identity))
    assert check is not None
    assert check.source == source


@pytest.mark.parametrize(
    ("value", "uris"),
    [
        ("", ()),
        (f'By=x;Subject="CN=a,URI={OTHER}";URI={WEB}', (WEB,)),
        (f'Subject="a\\";URI={OTHER}";URI={WEB}', (WEB,)),
        (f'Subject="never closed;URI={WEB}', ()),
        (f'uri="{WEB}"', (WEB,)),
        (f"URI={WEB},By=y", ()),
    ],
)
def test_forwarded_certificates(value: str, uris: tuple[str, ...]) -> None:
    assert identities_in(value) == uris


def test_only_what_came_is_known_of_headers() -> None:
    check = check_of_http(request(("x-a", "1"), ("x-a", "2"), ("x-b", "1,2"), ("content-length", "0")), HttpOptions())
    assert check is not None
    assert check.headers == {"x-a": ["1", "2"], "x-b": ["1,2"]}
    assert not check.all_headers
    assert check.joined_headers == {"x-b"}


def test_headers_of_the_proxy_are_not_those_of_the_client() -> None:
    options = HttpOptions(identity="x-peer", to="x-to", address="x-address", all_headers=True)
    headers = (("x-peer", WEB), ("x-to", "gateway:a/b"), ("x-address", "10.0.0.1"), ("x-more", "1"))
    check = check_of_http(request(*headers), options)
    assert check is not None
    assert (check.to, check.address, check.headers, check.all_headers) == (
        "gateway:a/b",
        "10.0.0.1",
        {"x-more": ["1"]},
        True,
    )
    without = check_of_http(request(*headers), HttpOptions())
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
    check = check_of_http(sent, options)
    assert (None if check is None else check.path) == path


@pytest.mark.parametrize(("partial", "complete"), [([], False), (["true"], False), (["false"], True)])
def test_a_body_is_whole_where_the_proxy_says_so(partial: list[str], complete: bool) -> None:
    headers = [("x-envoy-auth-partial-body", value) for value in partial]
    check = check_of_http(request(*headers, body=b"{}"), HttpOptions())
    assert check is not None
    assert check.body is not None
    assert check.body.complete is complete


def test_answers() -> None:
    allowed = response_of(ProxyAnswer(True, 200, "1", (("x-user", "ana"),), ("x-role", "x-eastgate-a")))
    assert allowed.status == 200
    assert allowed.headers == (("x-user", "ana"), ("x-envoy-auth-headers-to-remove", "x-role,x-eastgate-a"))
    denied = response_of(ProxyAnswer(False, 401, "1", client_headers=(("www-authenticate", "x"),), body=b"no"))
    assert (denied.status, denied.headers, denied.body) == (401, (("www-authenticate", "x"),), b"no")
