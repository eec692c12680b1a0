"""The whole engine decides a check, and asks authorizers once, in order, and only if the evaluation reaches them."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO

import pytest

from eastgate.cluster import ends
from eastgate.cluster.ends import ANONYMOUS, UNKNOWN_CALLER, ServiceAccount, SpiffeId
from eastgate.control.authorizer.checks import (
    DECISION_HEADER,
    MESSAGE_HEADERS,
    Body,
    ProxyAnswer,
    ProxyCheck,
    ProxyOptions,
)
from eastgate.control.authorizer.deciding import CheckOptions, OpenCheck
from eastgate.control.authorizer.log import DecisionLog, LazyRecord, Logged
from eastgate.ir import Reply, Ruling
from tests.control.authorizer.worlds import POD_ADDRESS, Services, live_authorizer

WEB = "spiffe://cluster.local/ns/shop/sa/web"
REVIEWS = ProxyCheck(
    source=SpiffeId(WEB),
    method="GET",
    path="/reviews/1?key=secret",
    host="reviews",
    destination=(POD_ADDRESS, 9080),
    http_protocol="HTTP/1.1",
)


def message(method: str, name: str | None = None, **more: object) -> bytes:
    params = {"name": name, "arguments": {}} if name is not None else {}
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params, **more}).encode()


BATCH = b"[" + message("tools/call", "read") + b"," + message("tools/call", "list") + b"]"
SESSION = {"mcp-session-id": "7"}
LOOKALIKE = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","Name":"write"}}'
DUPLICATE = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","name":"read"}}'


def call(account: str, content: bytes = message("tools/call", "read"), **changes: object) -> ProxyCheck:
    check = ProxyCheck(
        source=ServiceAccount("prod", account),
        method="POST",
        path="/mcp",
        host="mcp.example",
        headers={"content-type": "application/json"},
        body=Body(content, complete=True),
        shows_bodies=True,
        http_protocol="HTTP/2",
    )
    return replace(check, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({}, True),
        ({"path": "/admin"}, False),
        ({"method": "POST"}, False),
        ({"source": ANONYMOUS}, False),
        ({"source": UNKNOWN_CALLER}, False),
        ({"source": ServiceAccount("shop", "web")}, True),
        ({"source": ServiceAccount("shop", "cart")}, False),
        ({"path": "/reviews/../admin"}, False),
        ({"path": "/reviews%2f..%2fadmin"}, False),
        ({"path": None}, False),
        ({"destination": ("10.9.9.9", 9080)}, False),
        ({"destination": ("10.9.9.9", 9080), "to": "pod:shop/reviews"}, True),
        ({"to": "pod:shop/nobody"}, False),
        ({"to": "nonsense"}, False),
    ],
)
def test_pods(change: dict[str, object], allowed: bool) -> None:
    assert live_authorizer().decide(replace(REVIEWS, **change)).allowed is allowed  # type: ignore[arg-type]


def test_a_host_of_a_gateway_does_not_get_round_the_policies_of_the_pod() -> None:
    forged = replace(REVIEWS, path="/admin", host="toys.example", headers={"authorization": "APIKEY KEY-OF-ALICE"})
    answer = live_authorizer().decide(forged)
    assert not answer.allowed
    assert answer.record["to"] == "pod:shop/reviews"


def test_an_allowed_check_adds_the_decision_header_and_removes_forged_headers() -> None:
    answer = live_authorizer().decide(replace(REVIEWS, headers={"X-Eastgate-Target": "x", "accept": "*/*"}))
    assert answer.allowed
    assert answer.upstream_headers == ((DECISION_HEADER, answer.id),)
    assert answer.upstream_removed == ("X-Eastgate-Target",)


def test_a_log_record_is_built_once_and_only_when_it_is_read() -> None:
    made: list[dict[str, object]] = []

    def make() -> dict[str, object]:
        made.append({"id": "7", "policy": None})
        return made[-1]

    answer = ProxyAnswer(True, 200, "7", record=LazyRecord(make))
    DecisionLog(BytesIO(), Logged.NONE).decided(answer, "grpc", 0.1)
    DecisionLog(BytesIO(), Logged.DENIED).decided(answer, "grpc", 0.1)
    assert made == []
    written = BytesIO()
    DecisionLog(written).decided(answer, "grpc", 0.1)
    assert json.loads(written.getvalue()) == {"id": "7", "protocol": "grpc", "milliseconds": 100.0}
    assert (dict(answer.record), len(answer.record), len(made)) == ({"id": "7", "policy": None}, 2, 1)


def test_the_log_has_the_policy_and_the_client_has_not() -> None:
    answer = live_authorizer().decide(replace(REVIEWS, path="/admin?token=secret"))
    assert answer.status == 403
    assert answer.record["policy"] is None
    assert answer.record["path"] == "/admin"
    assert answer.record["id"] == answer.id
    assert "reviews-from-web" not in repr((answer.client_headers, answer.body))
    allowed = live_authorizer().decide(REVIEWS)
    assert (allowed.record["policy"], allowed.record["rule"]) == ("AuthorizationPolicy/shop/reviews-from-web", 0)


@pytest.mark.parametrize(
    ("check", "allowed", "asked"),
    [
        (call("agent"), True, []),
        (call("agent", message("tools/call", "write")), False, []),
        (call("agent", message("tools/list")), True, []),
        (call("agent", message("prompts/get", "x")), False, []),
        (call("stranger"), False, []),
        (call("auditor"), True, ["front.prod:9000", "back.prod:9000"]),
        (call("auditor", message("tools/call", "write")), False, ["front.prod:9000", "back.prod:9000"]),
        (call("agent", body=Body(message("tools/call", "read"), complete=False)), False, []),
        (call("agent", body=None), False, []),
        (call("agent", DUPLICATE), False, []),
        (call("agent", BATCH), True, []),
        (call("agent", b"[" + message("tools/call", "read") + b"," + message("tools/call", "write") + b"]"), False, []),
        (call("agent", path="/%40mcp"), True, []),  # checked strictly, and still no authorizer is asked
        (call("agent", method="GET", body=None), True, []),
        (call("agent", host="other.example"), False, []),
        (call("agent", source=UNKNOWN_CALLER), False, ["front.prod:9000", "back.prod:9000"]),
        (call("agent", method="GET", body=None, shows_bodies=False), False, []),  # it may have a body
        (call("agent", method="GET", body=None, headers={"upgrade": "websocket"}), False, []),
        (call("agent", method="GET", body=None, headers={"x-http-method-override": "POST"}), False, []),
        (call("agent", method="GET", body=None, headers={"content-length": "0"}), True, []),
        (call("agent", method="GET", body=None, headers={"content-length": "5"}), False, []),
        (call("agent", method="GET", body=None, headers={"transfer-encoding": "chunked"}), False, []),
        (call("agent", method="GET", body=None, unclear_headers=frozenset({"upgrade"})), False, []),
        (call("agent", method="GET", body=None, shown_headers=frozenset({"upgrade"})), False, []),
        (call("agent", method="DELETE", headers=SESSION, body=None), True, []),
        (call("agent", method="DELETE", headers=SESSION), False, []),
        (call("agent", method="DELETE", headers=SESSION, body=Body(b"{", complete=False)), False, []),
        (call("agent", method="DELETE", headers=SESSION, body=None, shows_bodies=False), False, []),
        (call("agent", method="PUT"), True, []),
        (call("agent", method="PUT", headers={"content-encoding": "deflate"}), False, []),
        (call("agent", shown_headers=frozenset()), False, []),  # it may be encoded
        (call("agent", shown_headers=MESSAGE_HEADERS), True, []),
        (call("agent", mcp=("tools/call", "read")), True, []),
        (call("agent", mcp=("tools/call", "list")), False, []),
        (call("agent", mcp=("tools/list", None)), False, []),
        (call("agent", mcp=(None, None)), False, []),  # the filter did not read it as a message
        (call("agent", LOOKALIKE, mcp=("tools/call", "read")), False, []),
        (call("agent", body=None, mcp=("tools/call", "read")), False, []),
        (call("agent", BATCH, mcp=("tools/call", "read")), False, []),
    ],
)  # fmt: skip
def test_tools(check: ProxyCheck, allowed: bool, asked: list[str]) -> None:
    services = Services()
    assert live_authorizer(services).decide(check).allowed is allowed
    assert services.asked == asked


OTHER_SPELLINGS = [
    *("/reviews/../admin", "/reviews/%2e%2e/admin", "/reviews//1", "/admin/..//reviews/1", "/reviews\\1", "//", "/."),
    *("/admin\\..\\reviews\\1", "/reviews/..;x/1", "/reviews/%2e%2e;x/1", "/reviews/.;/1", "/reviews/%61"),
    *("*", "reviews/1", "http://reviews/reviews/1", "/reviews/1#x", "#", "?", "/reviews/é", "/reviews/\x00"),
    *("/admin%3F/../reviews/1", "/reviews/%%36%31", '/reviews/"', "/reviews/<", "/reviews/|", "/reviews/1#?x"),
    *("/reviews/ ", "/reviews/%7e", "/reviews/1?x#y"),
]


@pytest.mark.parametrize("path", OTHER_SPELLINGS)
def test_a_path_that_normalisation_would_change_is_a_bad_request(path: str) -> None:
    answer = live_authorizer().decide(replace(REVIEWS, path=path))
    assert (answer.allowed, answer.status, answer.record["why"]) == (False, 400, "path")
    assert not live_authorizer().may_call(replace(call("agent"), path=path), "read")


def test_an_encoded_zero_byte_is_a_bad_request() -> None:
    answer = live_authorizer().decide(replace(REVIEWS, path="/reviews/%00"))
    assert (answer.allowed, answer.status) == (False, 400)


@pytest.mark.parametrize(
    "path",
    [
        *("/reviews/1?x=/../admin", "/reviews/1?a//b", "/reviews/...", "/reviews/.well-known", "/reviews/a%20b"),
        *("/reviews/%C3%A9", "/reviews/%c3%a9", "/reviews/@me", "/reviews/%40me", "/reviews/a;b"),
        *("/reviews/%3Fx", "/reviews/%252e%252e/admin", "/reviews/[1]", "/reviews/"),
    ],
)
def test_a_path_that_normalisation_leaves_is_decided(path: str) -> None:
    assert live_authorizer().decide(replace(REVIEWS, path=path)).allowed


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/reviews/../admin", False), ("/admin/../reviews/1", True), ("/reviews//1", True), ("/%72eviews/1", True)],
)
def test_a_path_is_normalised_where_the_proxy_does_the_same(path: str, allowed: bool) -> None:
    options = CheckOptions(proxy=ProxyOptions(normalizes_paths=True))
    assert live_authorizer(options=options).decide(replace(REVIEWS, path=path)).allowed is allowed


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ({"front": Reply.DENY}, ["front.prod:9000"]),
        ({"front": Reply.ERROR}, ["front.prod:9000"]),
        ({"front": "raises"}, ["front.prod:9000"]),
        ({"front": "nonsense"}, ["front.prod:9000"]),
        ({"back": Reply.DENY}, ["front.prod:9000", "back.prod:9000"]),
        ({"back": "raises"}, ["front.prod:9000", "back.prod:9000"]),
    ],
)
def test_the_authorizer_of_a_backend_is_not_asked_if_the_gateway_denies(
    answers: dict[str, str], asked: list[str]
) -> None:
    services = Services(**answers)
    assert live_authorizer(services).decide(call("auditor")).status == 403
    assert services.asked == asked


def test_a_check_without_authorizers_is_answered_at_once() -> None:
    authorizer = live_authorizer()
    assert isinstance(authorizer.begin(call("agent")), ProxyAnswer)
    waiting = authorizer.begin(call("auditor"))
    assert isinstance(waiting, OpenCheck)
    assert waiting.finish().allowed


def test_a_batch_asks_each_service_once() -> None:
    services = Services()
    batch = b"[" + message("tools/call", "read") + b"," + message("tools/list") + b"]"
    assert live_authorizer(services).decide(call("auditor", batch)).allowed
    assert services.asked == ["front.prod:9000", "back.prod:9000"]


def test_a_denied_message_gets_a_json_rpc_error_with_its_id() -> None:
    answer = live_authorizer().decide(call("agent", message("tools/call", "write")))
    assert answer.status == 403
    assert json.loads(answer.body)["id"] == 7
    assert ("content-type", "application/json") in answer.client_headers
    plain = live_authorizer(options=CheckOptions(plain_denials=True)).decide(
        call("agent", message("tools/call", "write"))
    )
    assert plain.body == b""


def test_a_message_that_cannot_be_read_is_a_bad_request() -> None:
    answer = live_authorizer().decide(call("agent", b'{"jsonrpc": "2.0", "method": "Tools/Call"'))
    assert answer.status == 400
    assert answer.record["unread"] == "syntax"


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"authorization": "APIKEY KEY-OF-ALICE"}, 200), ({"authorization": "APIKEY wrong"}, 401), ({}, 401)],
)
def test_schemes(headers: dict[str, str], status: int) -> None:
    check = ProxyCheck(ANONYMOUS, "GET", "/", "toys.example", headers, http_protocol="HTTP/1.1")
    answer = live_authorizer().decide(check)
    assert (answer.allowed, answer.status) == (status == 200, status)


def test_rulings_reach_application_and_client() -> None:
    consent = Ruling(True, 200, "", headers=(("x-user", "ana"),), removed=("x-user", "x-role"))
    services = Services(front=consent)
    answer = live_authorizer(services).decide(call("auditor", headers={"x-role": "admin"}))
    assert ("x-user", "ana") in answer.upstream_headers
    assert answer.upstream_removed == ("x-role",)
    headers = (("location", "/login"), ("bad\r\nname", "x"))
    denial = Ruling(False, 302, "go away", headers=headers, body="see there")
    denied = live_authorizer(Services(front=denial)).decide(call("auditor", method="GET", body=None))
    assert (denied.status, denied.body) == (302, b"see there")
    assert denied.client_headers == (("location", "/login"), (DECISION_HEADER, denied.id))


def test_a_denial_that_would_read_as_consent_is_forbidden() -> None:
    assert live_authorizer(Services(front=Ruling(False, 200, ""))).decide(call("auditor")).status == 403


def test_a_header_that_cannot_be_sent_denies() -> None:
    consent = Ruling(True, 200, "", headers=(("x-user", "ana\r\nx-admin: 1"),))
    assert live_authorizer(Services(front=consent)).decide(call("auditor")).status == 500


def test_time_for_a_decision_is_limited() -> None:
    services = Services()
    answer = live_authorizer(services, CheckOptions(seconds=-1)).decide(call("auditor"))
    assert (answer.status, answer.record["why"]) == (503, "timeout")
    assert services.asked == []


def test_tools_that_may_be_called() -> None:
    authorizer, services = live_authorizer(Services(front=Reply.DENY)), Services()
    listing = call("auditor", message("tools/list"))
    assert [tool for tool in ("read", "list", "write") if authorizer.may_call(listing, tool)] == ["read"]
    assert services.asked == []
    assert not authorizer.may_call(replace(listing, host="nowhere.example"), "read")


def test_finish_at_once_does_not_ask_a_slow_service() -> None:
    services = Services()
    waiting = live_authorizer(services).begin(call("auditor"))
    assert isinstance(waiting, OpenCheck)
    assert waiting.finish_at_once() is None
    assert services.asked == []
    assert waiting.finish().allowed
    assert len(services.asked) == len(set(services.asked)) == 2


def test_a_scheme_is_evaluated_at_once_where_it_asks_no_server() -> None:
    check = ProxyCheck(UNKNOWN_CALLER, "GET", "/", "toys.example", {"authorization": "APIKEY KEY-OF-ALICE"})
    waiting = live_authorizer(live=True).begin(check)
    assert isinstance(waiting, OpenCheck)
    answer = waiting.finish_at_once()
    assert answer is not None
    assert answer.allowed


def test_a_check_is_not_read_as_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str) -> str:
        raise AssertionError(f"`{text}` was read")

    ends.parse_source.cache_clear()
    ends.parse_destination.cache_clear()
    monkeypatch.setattr(ends, "canonical", refuse)
    options = CheckOptions(proxy=ProxyOptions(normalizes_paths=True))
    for own_proxies in (False, True):
        authorizer = live_authorizer(options=replace(options, own_proxies=own_proxies))
        assert authorizer.decide(REVIEWS).allowed
        assert authorizer.decide(call("agent")).record["to"] == "gateway:prod/agents"
