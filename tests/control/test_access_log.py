"""Decisions read from lines of a proxy's log."""

from __future__ import annotations

import pytest

from eastgate.control.access_log import read_record
from eastgate.local.history import History

_LINE = {"eastgate": "request", "workload": "shop/cart", "port": 8080, "peer": "none", "source": "127.0.0.1:1"}
_ALLOWED, _DENIED = "200:open", "403:none-of-1"


@pytest.mark.parametrize(
    ("decision", "details", "flags", "allowed"),
    [
        (_ALLOWED, "via_upstream", None, True),
        (_ALLOWED, "upstream_reset_before_response_started{connection_termination}", "UC", True),
        (_ALLOWED, "downstream_remote_disconnect", "DC", True),
        (_ALLOWED, "stream_idle_timeout", "SI", True),
        (_ALLOWED, "route_not_found", "NR", False),
        (_DENIED, "rbac_access_denied_matched_policy[403:none-of-1]", None, False),
        (_DENIED, "downstream_remote_disconnect", "DC", False),
        (None, "downstream_remote_disconnect", "DC", False),
    ],
)
def test_a_request_that_was_passed_on_counts_as_allowed_with_any_answer(
    decision: str | None, details: str, flags: str | None, allowed: bool
) -> None:
    seen = read_record({**_LINE, "decision": decision, "details": details, "flags": flags})
    assert seen is not None
    assert seen.allowed == allowed


_WEB, _CART = "spiffe://cluster.local/ns/shop/sa/web", "spiffe://cluster.local/ns/shop/sa/cart"


@pytest.mark.parametrize(
    ("peer", "identity", "expected"),
    [
        ("none", None, "none"),
        ("-", None, "none"),
        ("none", _WEB, _WEB),
        ("-", _WEB, _WEB),
        (_CART, None, _CART),
        (_CART, _WEB, _CART),  # a certificate has priority
        (None, None, None),
    ],
)
def test_a_caller_is_known_by_its_connection_and_else_by_its_token(
    peer: str | None, identity: str | None, expected: str | None
) -> None:
    seen = read_record({**_LINE, "peer": peer, "identity": identity, "decision": _ALLOWED})
    assert seen is not None
    assert seen.peer == expected


_RULE = "AccessPolicy.agentic/prod/asks#0"


@pytest.mark.parametrize(
    ("authorizer", "details", "flags", "status", "decision"),
    [
        (f"200:{_RULE}", "via_upstream", None, 200, f"200:{_RULE}"),
        (f"200:{_RULE}", "upstream_reset_before_response_started{timeout}", "UC", 503, f"200:{_RULE}"),
        (f"403:{_RULE}", "ext_authz_denied", "UAEX", 403, f"403:{_RULE}"),
        (f"403:{_RULE}", "ext_authz_denied", "UAEX", 200, f"403:{_RULE}"),  # returned as a JSON-RPC error
        (None, "via_upstream", None, 200, "200:authorizer"),
        (None, "ext_authz_denied", "UAEX", 403, "403:authorizer"),
        (None, "ext_authz_denied", "UAEX", 200, "403:authorizer"),
        (None, "ext_authz_error", "UAEX", 503, "503:authorizer-without-answer"),
        (None, "downstream_remote_disconnect", "DC", 0, "0:proxy/downstream_remote_disconnect"),
        (f"200:{_RULE}", "downstream_remote_disconnect", "DC", 0, f"200:{_RULE}"),
    ],
)
def test_the_decision_of_the_authorizer_counts_if_it_was_asked(
    authorizer: str | None, details: str, flags: str | None, status: int, decision: str
) -> None:
    line = {**_LINE, "decision": "200:ask", "authorizer": authorizer, "details": details, "flags": flags}
    seen = read_record({**line, "status": status})
    assert seen is not None
    assert (seen.decision, seen.asked) == (decision, True)
    assert seen.allowed == decision.startswith("200:")


def test_a_consent_does_not_count_where_something_refused_after_it() -> None:
    line = {**_LINE, "decision": "200:ask", "authorizer": f"200:{_RULE}", "details": "ext_authz_error", "flags": "UAEX"}
    seen = read_record({**line, "status": 503})
    assert seen is not None
    assert not seen.allowed


@pytest.mark.parametrize(("status", "allowed"), [(301, True), (302, True), (500, False), (503, False)])
def test_only_a_redirect_is_an_allowed_answer_of_the_gateway_itself(status: int, allowed: bool) -> None:
    seen = read_record({**_LINE, "decision": _ALLOWED, "details": "direct_response", "status": status})
    assert seen is not None
    assert seen.allowed == allowed


def test_a_gateway_logs_where_it_led_a_request_and_how_it_came() -> None:
    line = {**_LINE, "workload": "gateway:prod/gw", "decision": _ALLOWED, "details": "via_upstream"}
    rewritten = {"host": "inside", "path": "/v2", "originalHost": "outside", "originalPath": "/v1"}
    seen = read_record({**line, **rewritten, "destination": "d", "mcpMethod": "tools/call", "tool": "add"})
    assert seen is not None
    assert (seen.host, seen.path, seen.destination) == ("outside", "/v1", "d")
    assert (seen.mcp_method, seen.tool) == ("tools/call", "add")


def test_the_same_source_elsewhere_is_another_connection() -> None:
    """A client may call several workloads at once from one address and port."""
    history = History()
    here = {**_LINE, "source": "127.64.0.6:4000", "workload": "shop/cart", "port": 8080, "decision": _ALLOWED}
    there = {**here, "workload": "shop/web"}
    assert history.read({**here, "eastgate": "unreachable"}) is not None
    assert history.read({**there, "eastgate": "connection"}) is not None
    assert history.read({**here, "eastgate": "connection"}) is None
    assert history.read({**here, "eastgate": "connection"}) is not None
