"""Lines of Istio's proxies: the decisions in them, and lines that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eastgate.dialects import read_log_line
from eastgate.dialects.istio.provenance import AT_GATEWAY, AT_SIDECAR, AT_WAYPOINT, AT_ZTUNNEL
from eastgate.dialects.logs import LoggedDecision, LogLineError
from tests.dialects.istio.log_lines import NONE, as_json, envoy, ztunnel

_REJECTED = "connection closed due to policy rejection"
_XFCC = (
    "By=spiffe://cluster.local/ns/default/sa/bookinfo-ratings;Hash=aa;"
    'Subject="CN=a b";URI=spiffe://cluster.local/ns/default/sa/bookinfo-reviews'
)


def read(line: str) -> LoggedDecision:
    decision = read_log_line(line)
    assert decision is not None
    return decision


@pytest.mark.parametrize(
    ("name", "policy", "rule", "words"),
    [
        ("ns[foo]-policy[deny]-rule[2]", "AuthorizationPolicy/foo/deny", 2, "AuthorizationPolicy/foo/deny rule 2"),
        ("ns[foo]-policy[a.b-c]-rule[0]", "AuthorizationPolicy/foo/a.b-c", 0, "AuthorizationPolicy/foo/a.b-c rule 0"),
        (
            "istio-ext-authz-opa-ns[foo]-policy[ask]-rule[1]-deny-due-to-bad-CUSTOM-action",
            "AuthorizationPolicy/foo/ask",
            1,
            "AuthorizationPolicy/foo/ask rule 1: its provider `opa` is not valid",
        ),
        (
            "istio-ext-authz-ns[foo]-policy[ask]-rule[0]-deny-due-to-bad-CUSTOM-action",
            "AuthorizationPolicy/foo/ask",
            0,
            "AuthorizationPolicy/foo/ask rule 0: its provider is not valid",
        ),
    ],
)
@pytest.mark.parametrize("form", [envoy, as_json])
def test_the_details_name_a_rule(form: object, name: str, policy: str, rule: int, words: str) -> None:
    assert callable(form)
    cause = read(form(f"rbac_access_denied_matched_policy[{name}]")).cause
    assert (str(cause.policy), cause.rule, cause.words, cause.allowed) == (policy, rule, words, False)


@pytest.mark.parametrize(
    ("details", "words"),
    [
        (NONE, "no rule of an ALLOW policy matches"),
        ("rbac_access_denied_matched_policy[mine]", "the RBAC policy `mine`, which is of no AuthorizationPolicy"),
        ("jwt_authn_access_denied{Jwt_is_expired}", "the token was refused: the token has expired"),
        (
            "jwt_authn_access_denied{Jwt_header_is_an_invalid_JSON}",
            "the token was refused: Jwt header is an invalid JSON",
        ),
        ("ext_authz_denied", "the external authorizer of a CUSTOM policy denied it"),
        ("ext_authz_error", "the external authorizer of a CUSTOM policy could not be reached"),
        ("filter_chain_not_found", "plaintext where mTLS is required, or TLS that is not the mesh's"),
    ],
)
def test_a_denial_without_a_policy_has_a_text(details: str, words: str) -> None:
    cause = read(envoy(details)).cause
    assert (cause.words, cause.policy, cause.allowed) == (words, None, False)


@pytest.mark.parametrize(
    ("details", "flags"),
    [("via_upstream", "-"), ("upstream_reset_before_response_started{x}", "UF"), ("route_not_found", "NR")],
)
def test_a_request_that_reached_the_router_was_allowed(details: str, flags: str) -> None:
    assert read(envoy(details, flags=flags, status=503)).cause.allowed


@pytest.mark.parametrize("form", [envoy, as_json])
def test_a_line_names_caller_and_destination(form: object) -> None:
    assert callable(form)
    decision = read(form())
    assert (decision.method, decision.path, decision.host) == ("GET", "/ratings/0", "ratings:9080")
    assert (decision.caller.address, decision.called.address, decision.called.port) == ("10.1.0.6", "10.1.0.5", 9080)
    assert (decision.called.host, decision.called.service_port) == ("ratings.default.svc.cluster.local", 9080)
    assert decision.placements == {AT_SIDECAR}
    assert decision.time == "2026-11-16T09:12:33.123Z"
    assert not decision.plaintext


def test_a_connection_has_no_request() -> None:
    decision = read(envoy(method="-", cluster="inbound|9000||", local="10.1.0.5:9000"))
    assert (decision.method, decision.path, decision.called.port) == (None, None, 9000)
    assert decision.cause.unmatched


@pytest.mark.parametrize(
    ("cluster", "sni", "placements", "plaintext"),
    [
        ("inbound|9080||", "-", {AT_SIDECAR}, True),
        ("InboundPassthroughCluster", "outbound_.9080_._.a.b.svc.cluster.local", {AT_SIDECAR}, False),
        ("inbound-vip|9080|http|ratings.default.svc.cluster.local", "-", {AT_WAYPOINT}, False),
        ("outbound|9080||ratings.default.svc.cluster.local", "shop.example", {AT_SIDECAR, AT_GATEWAY}, True),
    ],
)
def test_the_cluster_names_the_kind_of_proxy(cluster: str, sni: str, placements: set[object], plaintext: bool) -> None:
    decision = read(envoy(cluster=cluster, sni=sni))
    assert decision.placements == placements
    assert decision.plaintext is plaintext


def test_an_address_that_a_proxy_in_front_reports_is_not_the_callers() -> None:
    decision = read(envoy(remote="203.0.113.9:0", forwarded="203.0.113.9"))
    assert (decision.caller.address, decision.forwarded_for) == (None, "203.0.113.9")


def test_addresses_may_be_of_ipv6() -> None:
    decision = read(envoy(local="[fd00::5]:9080", remote="[fd00::6]:41234"))
    assert (decision.called.address, decision.caller.address) == ("fd00::5", "fd00::6")


@pytest.mark.parametrize("line", [f'{envoy()} "{_XFCC}"', as_json(x_forwarded_client_cert=_XFCC)], ids=["text", "json"])
def test_certificates_behind_the_fields_are_found(line: str) -> None:
    assert read(line).caller.certificates == _XFCC


def test_a_client_cannot_forge_a_denial() -> None:
    forged = f'x" "y" "z" "ratings" "-" inbound|1|| - 10.9.9.9:1 10.9.9.9:2 - default "{NONE}'
    decision = read(envoy("via_upstream", status=200, agent=forged))
    assert decision.cause.allowed
    assert decision.caller.address == "10.1.0.6"


@pytest.mark.parametrize(
    "around",
    ["[pod/ratings-v1-7d4b9-x2x4z/istio-proxy] {}", "2026-11-16T09:12:34Z stdout F {}", "{}\n"],
)
def test_a_line_is_found_in_other_text(around: str) -> None:
    assert read(around.format(envoy())).method == "GET"


def test_kubectl_names_the_pod() -> None:
    assert read(f"[pod/ratings-v1-7d4b9-x2x4z/istio-proxy] {envoy()}").called.pod == "ratings-v1-7d4b9-x2x4z"


def test_a_collector_may_have_the_line_as_text() -> None:
    assert read(json.dumps({"log": as_json(), "stream": "stdout"})).cause.unmatched


@pytest.mark.parametrize(
    "text",
    [
        "rbac_access_denied_matched_policy[ns[foo]-policy[deny]-rule[0]]",
        "ns[foo]-policy[deny]-rule[0]",
        "debug envoy rbac rbac_filter.cc:194 enforced denied, matched policy ns[foo]-policy[deny]-rule[0] thread=24",
        'RBAC: access denied (details: "rbac_access_denied_matched_policy[ns[foo]-policy[deny]-rule[0]]")',
    ],
)
def test_the_name_alone_is_enough(text: str) -> None:
    decision = read(text)
    assert str(decision.cause.policy) == "AuthorizationPolicy/foo/deny"
    assert not decision.placements


# ztunnel


@pytest.mark.parametrize(
    ("error", "policy", "words"),
    [
        (
            f"{_REJECTED}: explicitly denied by: foo/deny",
            "AuthorizationPolicy/foo/deny",
            "AuthorizationPolicy/foo/deny",
        ),
        (f"{_REJECTED}: allow policies exist, but none allowed", None, "no rule of an ALLOW policy matches"),
        (
            f"{_REJECTED}: explicitly denied by: istio-system/istio_converted_static_strict",
            None,
            "plaintext, where a PeerAuthentication requires mTLS",
        ),
        (
            f"{_REJECTED}: explicitly denied by: foo/converted_peer_authentication_strict",
            "PeerAuthentication/foo/strict",
            "PeerAuthentication/foo/strict: plaintext, where it requires mTLS",
        ),
        (_REJECTED, None, "a policy, which this version of ztunnel does not name"),
        ("connection closed due to policy change", None, "a policy that came later closed the connection"),
    ],
)
def test_ztunnel_names_the_policy(error: str, policy: str | None, words: str) -> None:
    cause = read(ztunnel(error)).cause
    assert (str(cause.policy) if cause.policy else None, cause.words) == (policy, words)


def test_ztunnel_names_caller_and_destination() -> None:
    decision = read(ztunnel(None))
    assert decision.cause.allowed
    assert decision.placements == {AT_ZTUNNEL}
    assert (decision.caller.identity, decision.caller.pod) == (
        "spiffe://cluster.local/ns/default/sa/bookinfo-reviews",
        "reviews-v1-6584ddcf65-k78wz",
    )
    assert (decision.called.pod, decision.called.port) == ("ratings-v1-d5789fdfb-c5w2c", 9080)
    assert read(ztunnel(None, identity=False)).plaintext


def test_ztunnel_may_log_json() -> None:
    record = {"level": "error", "time": "2026-11-16T09:12:33.1Z", "scope": "access", "message": "connection complete"}
    ends = {"src.addr": "10.1.0.6:1", "dst.addr": "10.1.0.5:9080", "direction": "inbound"}
    decision = read(json.dumps({**record, **ends, "error": f"{_REJECTED}: explicitly denied by: foo/deny"}))
    assert (str(decision.cause.policy), decision.called.port) == ("AuthorizationPolicy/foo/deny", 9080)


# Lines without a decision


def test_the_lines_of_a_real_envoy_are_read() -> None:
    """Envoy 1.40 wrote these lines, with Istio's formats, for curl: DELETE, PUT, GET, POST and two bad tokens."""
    told = []
    for line in (Path(__file__).parent / "envoy.log").read_text().splitlines():
        try:
            decision = read(line)
        except LogLineError as error:
            told.append(error.diagnostic.code.id)
        else:
            told.append(f"{decision.method} {'allow' if decision.cause.allowed else 'deny'}: {decision.cause.words}")
    connection = "EG2152"  # a line of the listener: the requests of the connection have their own lines
    none = "no rule of an ALLOW policy matches"
    plaintext = "None deny: plaintext where mTLS is required, or TLS that is not the mesh's"
    requests = [
        f"DELETE deny: {none}",
        "PUT deny: AuthorizationPolicy/foo/deny-put rule 1",
        "GET allow: policies allowed it",
        f"POST deny: {none}",
        "GET deny: the token was refused: "
        "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections",
        "GET deny: the token was refused: no rule has the issuer of the token",
    ]
    text = [word for request in requests for word in (request, connection)]
    json_lines = [requests[0], connection, requests[1], connection, requests[2], plaintext]
    assert told == [*text, connection, plaintext, f"None deny: {none}", *json_lines]


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (
            envoy("via_upstream", status=403, cluster="outbound|9080||ratings.default.svc.cluster.local"),
            "EG2151",
            "from the caller's proxy",
        ),
        (ztunnel("http status: 401 Unauthorized", direction="outbound"), "EG2151", "from the caller's ztunnel"),
        (envoy("http1.codec_error", status=400), "EG2152", "`http1.codec_error`, which is not a decision"),
        (ztunnel("connection failed: refused"), "EG2152", "`connection failed: refused`"),
        ("RBAC: access denied", "EG2152", "Envoy's answer to every request"),
        (
            '[2019-02-15T09:06:04.079Z] "GET /details/0 HTTP/1.1" 403 - 0 178 5 3 "-" "a" "b" "c" "d" e - f g -',
            "EG2152",
            "has no response details",
        ),
        (envoy()[:90], "EG2153", "not complete"),
        (ztunnel(None)[:80], "EG2153", "not complete"),
        (NONE, "EG2153", "the text contains only this"),
        ("jwt_authn_access_denied{Jwt_is_expired}", "EG2153", "the text contains only this"),
    ],
)
def test_a_line_without_a_decision_is_an_error(line: str, code: str, message: str) -> None:
    with pytest.raises(LogLineError) as caught:
        read_log_line(line)
    diagnostic = caught.value.diagnostic
    assert (diagnostic.code.id, message in diagnostic.message) == (code, True)
    assert diagnostic.help


@pytest.mark.parametrize(
    "line", ["", "{", "hello", '{"a": 1}', '{"scope": "access"', "[2026] x", '{"eastgate": "request"}']
)
def test_other_lines_are_ignored(line: str) -> None:
    assert read_log_line(line) is None
