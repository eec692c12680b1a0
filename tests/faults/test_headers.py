"""Repeated headers, and headers that a proxy changes before policies read them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import pytest

from eastgate.authority.questions import Question
from eastgate.envoy.config import values
from eastgate.envoy.plan import joint_of
from eastgate.envoy.plan.combining import obstacle
from eastgate.envoy.plan.vantage import AT_SIDECAR
from eastgate.ir import Is, Present
from eastgate.ir.attributes import header, header_values
from eastgate.local.calls import make_calls
from eastgate.local.machine.connection import CallConnection
from tests.attacks.frames import GOAWAY, RST_STREAM, frames, opening, request
from tests.faults.hammering import hammering
from tests.faults.linkerd import only_for_bob
from tests.faults.meshes import Running, running, until
from tests.faults.worlds import HTTP, sa

Headers = Sequence[tuple[str, str]]
_VERSIONS = ("HTTP/1.1", "HTTP/1.0", "HTTP/2")


def _matching(name: str, *wanted: str, kind: str = "Exact") -> list[dict[str, object]]:
    return [{"headers": [{"name": name, "value": value, "type": kind}]} for value in wanted]


def _bytes(version: str, headers: Headers, path: str = "/") -> bytes:
    if version == "HTTP/2":
        pseudo = ((b":method", b"GET"), (b":path", path.encode()), (b":scheme", b"http"), (b":authority", b"a"))
        return opening() + request(
            *pseudo, *((name.lower().encode(), value.encode("latin-1")) for name, value in headers)
        )
    lines = [f"GET {path} {version}", "host: a", *(f"{name}: {value}" for name, value in headers)]
    return ("".join(f"{line}\r\n" for line in lines) + "\r\n").encode("latin-1")


async def _open(mesh: Running) -> CallConnection:
    """Open a connection as alice, from another address than the workload's."""
    tls = await mesh.mesh.certificates.context(sa("alice"))
    return await CallConnection.open(mesh.target(), tls=tls, source_address=mesh.mesh.own_address)


async def _decided(mesh: Running, version: str, headers: Headers) -> str:
    """Return the decision of the proxy about a request."""
    async with await _open(mesh) as connection:
        await connection.send(_bytes(version, headers))
        [seen] = await mesh.logged(connection)
        return seen.decision


def _engine(mesh: Running, headers: Headers) -> str:
    given: dict[str, list[str]] = {}
    for name, value in headers:
        given.setdefault(name, []).append(value)
    asked = Question.of("sa:shop/alice", "pod:shop/server", port=HTTP, method="GET", path="/", host="a", headers=given)
    return mesh.mesh.authority.decide(asked).verdict


_ROLES: list[tuple[Headers, str]] = [
    ([], "allow"),
    ([("x-role", "admin")], "deny"),
    ([("X-Role", "admin")], "deny"),
    ([("x-role", "admin"), ("x-role", "admin")], "deny"),
    ([("x-role", "user"), ("x-role", "admin")], "deny"),
    ([("x-role", "admin"), ("x-other", "1"), ("X-ROLE", "user")], "deny"),
    ([("x-role", "user"), ("x-role", "")], "allow"),
    ([("x-role", "admin,user")], "allow"),
    ([("x-role", "admin, user")], "allow"),
    ([("x-role", "adm"), ("x-role", "in")], "allow"),
    ([("x-role", "admin "), ("x-role", "user")], "deny"),
    ([("x-role", " admin")], "deny"),
    ([("x-role", "\tadmin\t ")], "deny"),
    ([("x-role", str(number)) for number in range(60)], "allow"),
    ([*(("x-role", str(number)) for number in range(60)), ("x-role", "admin")], "deny"),
]


@pytest.mark.parametrize("version", _VERSIONS)
async def test_any_value_of_a_header_counts(version: str) -> None:
    async with running(*only_for_bob(*_matching("x-role", "admin"))) as mesh:
        for headers, verdict in _ROLES:
            assert _engine(mesh, headers) == verdict, headers
            assert (await _decided(mesh, version, headers)).startswith("200:") == (verdict == "allow"), headers


@pytest.mark.parametrize("version", _VERSIONS)
async def test_an_expression_is_tried_on_each_value_alone(version: str) -> None:
    async with running(*only_for_bob(*_matching("x-role", "a.*b", kind="RegularExpression"))) as mesh:
        for headers, verdict in (
            ([("x-role", "a1b")], "deny"),
            ([("x-role", "1"), ("x-role", "a,b")], "deny"),
            ([("x-role", "a"), ("x-role", "b")], "allow"),
            ([("x-role", "a1"), ("x-role", "1b")], "allow"),
            ([("x-role", str(number)) for number in range(7)] + [("x-role", "ab")], "deny"),
            ([("x-role", str(number)) for number in range(8)], "allow"),
        ):
            assert _engine(mesh, headers) == verdict, headers
            assert (await _decided(mesh, version, headers)).startswith("200:") == (verdict == "allow"), headers
        many = [("x-role", str(number)) for number in range(9)]
        assert await _decided(mesh, version, many) == "400:unclear-values"


async def test_a_call_sends_all_values() -> None:
    async with running(*only_for_bob(*_matching("x-role", "admin"))) as mesh:
        for every, verdict in ((["user", "guest"], "allow"), (["user", "admin"], "deny")):
            asked = Question.of("sa:shop/alice", "pod:shop/server", port=HTTP, headers={"x-role": every})
            [made] = await make_calls(mesh.mesh, asked)
            assert made.decision.verdict == verdict
            assert made.agrees


# Headers whose values Envoy joins


@pytest.mark.parametrize(("version", "joined"), [("HTTP/1.1", "a,b"), ("HTTP/1.0", "a,b"), ("HTTP/2", "a, b")])
async def test_what_may_be_several_values_is_refused(version: str, joined: str) -> None:
    async with running(*only_for_bob(*_matching("user-agent", "bad"))) as mesh:
        assert (await _decided(mesh, version, [("user-agent", "bad")])).startswith("403:")
        assert (await _decided(mesh, version, [("user-agent", "good")])).startswith("200:")
        assert (await _decided(mesh, version, [("user-agent", "bad"), ("user-agent", "good")])) == "400:unclear-values"
        assert (await _decided(mesh, version, [("user-agent", joined)])) == "400:unclear-values"


async def test_a_comma_before_a_blank_is_one_value_in_http1() -> None:
    async with running(*only_for_bob(*_matching("user-agent", "Mozilla (KHTML, like Gecko)"))) as mesh:
        assert (await _decided(mesh, "HTTP/1.1", [("user-agent", "Mozilla (KHTML, like Gecko)")])).startswith("403:")
        assert (await _decided(mesh, "HTTP/1.1", [("user-agent", "Mozilla (KHTML, like)")])).startswith("200:")


async def test_cookies_of_http2_are_one_text() -> None:
    async with running(*only_for_bob(*_matching("cookie", "a=1"))) as mesh:
        two = [("cookie", "b=2"), ("cookie", "a=1")]
        assert (await _decided(mesh, "HTTP/1.1", two)).startswith("403:")
        assert (await _decided(mesh, "HTTP/1.1", [("cookie", "b=2; a=1")])).startswith("200:")
        assert (await _decided(mesh, "HTTP/2", two)) == "400:unclear-values"
        assert (await _decided(mesh, "HTTP/2", [("cookie", "a=1")])).startswith("403:")


@pytest.mark.parametrize("name", ["Expect", "te", "http2-settings", "Connection", "x-envoy-internal"])
async def test_what_the_proxy_changes_closes_the_port(name: str) -> None:
    async with running(*only_for_bob(*_matching(name, "x"))) as mesh:
        assert list(mesh.mesh.enforcement.closed) == [("shop/server", 8080)]
        assert (await mesh.call("alice")).status == 0


async def test_a_header_that_connection_names_ends_at_the_proxy() -> None:
    async with running(*only_for_bob(*_matching("x-role", "admin"))) as mesh:
        for connection in ("x-role", "close, X-Role", "keep-alive,x-role"):
            headers = [("connection", connection), ("x-role", "admin")]
            assert _engine(mesh, headers) == "allow"
            assert (await _decided(mesh, "HTTP/1.1", headers)).startswith("200:")
        assert (await _decided(mesh, "HTTP/1.1", [("connection", "close"), ("x-role", "admin")])).startswith("403:")


# Changes and failures of the filter


async def test_a_filter_that_fails_denies_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = 'function envoy_on_request(handle)\n  error("it fails")\nend\n'
    monkeypatch.setattr(values, "_script", lambda: failing)
    async with running(*only_for_bob(*_matching("x-role", "admin"))) as mesh:
        assert (await _decided(mesh, "HTTP/1.1", [])) == "400:unclear-values"
        assert (await _decided(mesh, "HTTP/1.1", [("x-role", "user")])) == "400:unclear-values"


async def test_values_are_noted_for_as_long_as_any_rule_looks_at_them() -> None:
    """Policies start and stop reading a header. Requests meanwhile are decided by the old or the new rules."""
    by_path, by_header = only_for_bob({"path": {"type": "Exact", "value": "/b"}}), only_for_bob(*_matching("k", "v"))
    async with running(*by_path) as mesh:
        statuses: list[int] = []
        ended = asyncio.Event()

        async def hammer() -> None:
            async with await _open(mesh) as connection:
                while not ended.is_set():
                    await connection.send(_bytes("HTTP/1.1", [("k", "v")]))
                    statuses.append((await connection.response()).status)

        task = asyncio.create_task(hammer())
        for _ in range(5):
            for manifests, status in ((by_header, 403), (by_path, 200)):
                await mesh.change(*manifests)
                seen = len(statuses) + 2  # one may have been in flight
                await until(lambda wanted=seen: len(statuses) > wanted)  # type: ignore[misc]
                assert statuses[-1] == status
        ended.set()
        await task
        assert set(statuses) == {200, 403}


async def test_no_half_of_a_change_from_an_expression_to_a_value_allows_a_request() -> None:
    """Both policies deny the request. Scripts note the values, and change before and after the rules."""
    by_pattern = only_for_bob(*_matching("x-role", "admin.*", kind="RegularExpression"))
    by_value = only_for_bob(*_matching("x-role", "admin"))
    async with running(*by_pattern) as mesh:

        async def denied() -> int:
            async with await _open(mesh) as connection:
                for _ in range(20):
                    await connection.send(_bytes("HTTP/1.1", [("x-role", "admin")]))
                    status = (await connection.response()).status
                    if status != 403:
                        return status
            return 403

        async with hammering({str(number): denied for number in range(4)}) as answers:
            for _ in range(6):
                for manifests in (by_value, by_pattern):
                    await mesh.change(*manifests)
                    await answers.more("0", 2)
        assert all(answers.only(str(number), 403) for number in range(4)), answers


async def test_no_name_is_taken_for_a_value_of_another() -> None:
    matches = [*_matching("x", "abc+", kind="RegularExpression"), *_matching("x.0", "admin")]
    async with running(*only_for_bob(*matches)) as mesh:
        for headers in (
            [("x.0", "admin")],
            [("x.0", "admin"), ("x", "=")],
            [("x", "abc")],
            [("x", "=admin"), ("x.0", "admin")],
        ):
            assert _engine(mesh, headers) == "deny"
            assert (await _decided(mesh, "HTTP/1.1", headers)).startswith("403:"), headers


# All common headers

_COMMON = re.findall(
    r"\S+",
    """
accept accept-charset accept-encoding accept-language access-control-request-headers access-control-request-method
access-control-request-private-network age allow alt-used authentication authorization b3 baggage cache-control
cdn-loop client-cert connection content-disposition content-encoding content-language content-location content-md5
content-range content-type cookie date dnt early-data expect forwarded from grpc-accept-encoding grpc-encoding
grpc-timeout host http2-settings idempotency-key if-match if-modified-since if-none-match if-range if-unmodified-since
keep-alive last-event-id max-forwards mcp-session-id origin pragma prefer priority proxy-authorization
proxy-connection proxy-status purpose range referer save-data sec-fetch-mode sec-fetch-site sec-websocket-key
sec-websocket-protocol server soapaction te traceparent tracestate trailer upgrade upgrade-insecure-requests
user-agent via warning x-api-key x-b3-traceid x-client-trace-id x-correlation-id x-csrf-token x-envoy-internal
x-envoy-original-path x-forwarded-client-cert x-forwarded-for x-forwarded-host x-forwarded-path x-forwarded-port
x-forwarded-prefix x-forwarded-proto x-forwarded-scheme x-http-method-override x-original-url x-ot-span-context
x-real-ip x-request-id x-requested-with x-rewrite-url x-role x_role
    """,
)
_DUMP = """
function envoy_on_request(handle)
  local found = {}
  for name, value in pairs(handle:headers()) do found[#found + 1] = "<" .. name .. ":" .. value .. ">" end
  handle:respond({[":status"] = "200"}, table.concat(found))
end
"""


async def test_envoy_shows_every_header_as_it_was_sent_or_it_is_known_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send each once, twice and empty. If Envoy changes a header, policies refuse it, or know that it is joined."""
    monkeypatch.setattr(values, "_script", lambda: _DUMP)
    async with running(*only_for_bob(*_matching("x-role", "admin"))) as mesh:
        for name in _COMMON:
            joint = joint_of(header(name))
            if obstacle(Is(header(name), Present()), AT_SIDECAR) is not None:
                continue
            for version in _VERSIONS:
                for sent in (["v"], ["v", "w"], ["v", ""], [""]):
                    body = await _until_shown(mesh, _bytes(version, [(name, value) for value in sent]))
                    shown = re.findall(rb"<" + re.escape(name.encode()) + rb":([^>]*)>", body)
                    shown_values = [one.decode() for one in shown]
                    if joint is not None and (len(sent) > 1 or sent == [""]):
                        assert len(shown_values) <= 1 or shown_values == sent, (name, version)
                    else:
                        assert shown_values == sent, (name, version)


async def _until_shown(mesh: Running, request: bytes) -> bytes:
    async with await mesh.open("alice") as connection:
        await connection.send(request)
        found = b""
        async with asyncio.timeout(10):
            while b"<:method:" not in found or not found.rstrip().endswith((b">", b"\n")):
                piece = (await connection.raw(5, 1)).body
                if not piece:
                    return found
                found += piece
                if _is_refused(found):
                    return found
        return found


def _is_refused(answer: bytes) -> bool:
    """Return whether the proxy refuses to read the request. It may keep the connection open for a while."""
    if answer.startswith(b"HTTP/1"):
        return answer[9:10] == b"4"
    return any(one.kind in (RST_STREAM, GOAWAY) for one in frames(bytearray(answer)))


def test_values_are_grouped_by_name() -> None:
    given = {"X-Role": ["a", " b "], "x-role": "c", "Connection": "x-other", "x-other": "1"}
    assert header_values(given) == {"x-role": ("a", "b", "c"), "connection": ("x-other",)}
    assert header_values(header_values(given)) == header_values(given)
