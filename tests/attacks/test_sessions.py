"""A session belongs to one caller, server and gateway. No other session id passes a gateway, in either direction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from eastgate.local.machine.connection import CallConnection, Called
from tests.attacks.agents import (
    LIST,
    TOOLS,
    AgentBench,
    McpArrived,
    access_policy,
    answer,
    request,
    tool_message,
)
from tests.attacks.trying import Try
from tests.differential.world import Manifest
from tests.patience import PATIENCE

_INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
_HEADER = "mcp-session-id"


@pytest.fixture(autouse=True)
def fresh(agents: AgentBench) -> Iterator[None]:
    agents.clear()
    yield
    agents.clear()


def _session(agents: AgentBench, who: str, host: str = "maths.example", at: str = "gw") -> str:
    session = agents.call(who, _INITIALIZE, host=host, at=at).header(_HEADER)
    assert session is not None
    agents.clear()
    return session


def _others(session: str) -> Iterator[str]:
    """Yield ids that no server issued, derived from a real one."""
    own, _, tag = session.rpartition(".")
    yield from (own, f".{tag}", tag, f"{own}.", session[:-1], session + "0", session + session, f"{session}.{tag}")
    yield from (f"{own}.{tag.upper()}", f"{own}x.{tag}", f"{own}.{'0' * len(tag)}", f"{session},{session}")
    yield from (f"{own},x.{tag}", f'"{session}"', "x" * 5000, "%00", f"{session}%0d%0ax:y", f"{own}\t.{tag}", "")


@pytest.mark.parametrize("who", ["narrow", "broad", "asked", "free"])
def test_no_other_session_reaches_a_server(agents: AgentBench, who: str) -> None:
    own = _session(agents, who)
    foreign = [
        _session(agents, "free" if who != "free" else "broad"),
        _session(agents, who, host="files.example"),
        _session(agents, who, at="gw2"),
    ]
    ids = [*foreign, *(made for session in (own, *foreign) for made in _others(session))]
    call = json.dumps(tool_message("add")).encode()
    unread = [
        b'{"id":1,' + call[1:],
        call + b" x",
    ]
    tries = [
        Try(
            f"{number} {method} {session}",
            (request(body, (_HEADER, session), ("last-event-id", "1"), method=method).encode(""),),
        )
        for session in ids
        for number, (method, body) in enumerate(
            [("POST", call), *(("POST", each) for each in unread), ("GET", None), ("DELETE", None), ("PUT", call)]
        )
    ]
    tries += [
        Try(f"{name} twice", (request(call, (name, own), (_HEADER, other)).encode(""),))
        for name in (_HEADER, "Mcp-Session-Id")
        for other in (own, foreign[0], "x")
    ]
    agents.make(who, tries)
    assert [(each.method, each.header(_HEADER)) for each in agents.arrived if each.header(_HEADER)] == []
    assert not [each for each in agents.arrived if each.method == "GET"]


@pytest.mark.parametrize("who", ["narrow", "broad", "asked", "free"])
def test_an_own_session_does(agents: AgentBench, who: str) -> None:
    own = _session(agents, who)
    agents.call(who, tool_message("add"), (_HEADER, own))
    agents.call(who, None, (_HEADER, own), ("last-event-id", "7"), method="GET")
    agents.call(who, None, (_HEADER, own), method="DELETE")
    raw = own.rpartition(".")[0]
    assert [(each.method, each.header(_HEADER)) for each in agents.arrived] == [
        (method, raw) for method in ("POST", "GET", "DELETE")
    ]
    assert {each.header("last-event-id") for each in agents.arrived} == {None}


_NOT_ANY_MORE: dict[str, Callable[[str], Manifest]] = {
    "a denial at the Gateway": lambda who: access_policy("gone", "Gateway:gw", (who, None), action="Deny"),
    "a denial at the backend": lambda who: access_policy("gone", "XBackend:maths", (who, None), action="Deny"),
}
_STREAM = b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n6\r\n: hi\n\n\r\n"


@pytest.mark.parametrize("who", ["narrow", "asked"])
@pytest.mark.parametrize("how", _NOT_ANY_MORE)
def test_an_idle_stream_ends_when_its_caller_is_denied(agents: AgentBench, who: str, how: str) -> None:
    """No data comes on the stream before or after the change, so only the gateway can end it."""
    own = _session(agents, who)
    others = _session(agents, "free")
    agents.servers["maths"].script = lambda arrived: _STREAM if arrived.method == "GET" else None

    async def stream(caller: str, session: str) -> CallConnection:
        connection = await agents.connect(caller)
        await connection.send(request(None, (_HEADER, session), method="GET"))
        received = b""
        while b": hi" not in received:
            received += (await connection.raw(PATIENCE, enough=1)).body
        return connection

    async def ended(connection: CallConnection) -> bool:
        """Return whether the stream ends while a client reads it."""
        while (await connection.raw(PATIENCE, enough=1)).body:
            pass
        return await connection.peer_closed(PATIENCE)

    idle, other = (agents.run(stream(caller, session)) for caller, session in ((who, own), ("free", others)))
    try:
        agents.enforce([_NOT_ANY_MORE[how](who)])
        assert agents.run(ended(idle))
        assert other.closed_at is None
        agents.servers["maths"].script = lambda _: None
        agents.clear()
        agents.call(who, None, (_HEADER, own), method="GET")
        assert agents.arrived == []
    finally:
        for connection in (idle, other):
            agents.run(connection.close())
        agents.enforce(())


_SLOW = json.dumps(tool_message("add")).encode()


@pytest.mark.parametrize("held", [1, len(_SLOW)])
@pytest.mark.parametrize("how", _NOT_ANY_MORE)
def test_a_message_that_is_awaited_when_its_caller_is_denied_does_not_arrive(
    agents: AgentBench, how: str, held: int
) -> None:
    """A proxy decides a message when it is complete, by the policies at the time of its headers."""
    agents.clear()
    head = request(None, ("content-length", str(len(_SLOW)))).encode("")

    async def begin(who: str) -> CallConnection:
        connection = await agents.connect(who)
        await connection.send(head + _SLOW[: len(_SLOW) - held])
        return connection

    async def finish(connection: CallConnection) -> bytes:
        try:
            await connection.send(_SLOW[len(_SLOW) - held :])
            return (await connection.raw(PATIENCE, enough=1)).body
        except OSError:
            return b""

    denied = ("narrow", "broad", "asked")
    waiting = {who: agents.run(begin(who)) for who in (*denied, "free")}
    try:
        for who in denied:
            agents.enforce([_NOT_ANY_MORE[how](who)])
            assert agents.run(waiting[who].peer_closed(PATIENCE)), who
            agents.run(finish(waiting[who]))
        assert agents.arrived == []
        assert agents.run(finish(waiting["free"])).startswith(b"HTTP/1.1 200")  # it may do everything, as before
    finally:
        for connection in waiting.values():
            agents.run(connection.close())
        agents.enforce(())


@pytest.mark.parametrize("who", ["narrow", "broad", "asked"])
def test_a_session_does_not_allow_messages_that_are_not_read(agents: AgentBench, who: str) -> None:
    own = _session(agents, who)
    call = json.dumps(tool_message("rm")).encode()
    upgrade = (("connection", "upgrade"), ("upgrade", "websocket"))
    tries = [
        Try(f"{method} {more}", (request(call, (_HEADER, own), *more, method=method).encode(""),))
        for method in ("GET", "DELETE", "PUT", "OPTIONS", "HEAD")
        for more in ((), upgrade, (("x-http-method-override", "POST"),), (("expect", "100-continue"),))
    ]
    tries += [
        Try(f"{method} {more} without a body", (request(None, (_HEADER, own), *more, method=method).encode(""),))
        for method in ("GET", "DELETE")
        for more in (upgrade, (("x-http-method-override", "POST"),))
    ]
    agents.make(who, tries)
    assert [(each.method, each.headers) for each in agents.arrived] == []


@pytest.mark.parametrize(
    "given",
    ["a b", "a\tb", "x" * 3000, "\xe9", "", "a,b"],
)
def test_a_session_that_a_server_must_not_give_reaches_no_client(agents: AgentBench, given: str) -> None:
    agents.servers["maths"].script = lambda _: answer(b"{}", (_HEADER, given))
    received = agents.call("free", _INITIALIZE)
    session = received.header(_HEADER)
    assert received.status == 502 if session is None else session.rpartition(".")[0] == given
    agents.servers["maths"].script = lambda _: answer(b"{}", (_HEADER, "a"), (_HEADER, "b"))
    received = agents.call("free", _INITIALIZE)
    assert (received.status, received.header(_HEADER)) == (502, None)


# Lists of tools


def _listed(called: Called) -> list[str]:
    return [tool for tool in TOOLS if f'"{tool}"'.encode() in called.body]


_RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": name} for name in TOOLS]}}
_TEXT = json.dumps(_RESULT)
_ANSWERS = {
    "plain": answer(_TEXT.encode()),
    "another status": answer(_TEXT.encode(), status=203),
    "created": answer(_TEXT.encode(), status=201),
    "accepted": answer(_TEXT.encode(), status=202),
    "partial": answer(_TEXT.encode(), ("content-range", "bytes 0-9/10"), status=206),
    "said to be compressed": answer(_TEXT.encode(), ("content-encoding", "gzip")),
    "said to be nothing": answer(_TEXT.encode(), ("content-encoding", "identity")),
    "as text": answer(_TEXT.encode(), kind="text/plain"),
    "without a type": answer(_TEXT.encode(), kind=""),
    "in another charset": answer(_TEXT.encode("utf-16"), kind="application/json; charset=utf-16"),
    "with a mark": answer(b"\xef\xbb\xbf" + _TEXT.encode()),
    "two results": answer(_TEXT.encode() + _TEXT.encode()),
    "two members": answer(
        f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[]}},"result":{json.dumps(_RESULT["result"])}}}'.encode()
    ),
    "a member in another case": answer(_TEXT.replace('"tools"', '"Tools"').encode()),
    "a batch": answer(f"[{_TEXT},{_TEXT}]".encode()),
    "events": answer(f"event: message\ndata: {_TEXT}\n\n".encode(), kind="text/event-stream"),
    "events with CR": answer(f"data: {_TEXT}\r\r".encode(), kind="text/event-stream"),
    "events with all ends": answer(
        f"data: {_TEXT}\r\n\r\ndata:{_TEXT}\r\rdata: {_TEXT}\n\n".encode(), kind="text/event-stream"
    ),
    "an event that does not end": answer(f"data: {_TEXT}".encode(), kind="text/event-stream"),
    "an event in lines": answer(
        "".join(f"data: {line}\n" for line in json.dumps(_RESULT, indent=1).splitlines()).encode() + b"\n",
        kind="text/event-stream",
    ),
    "a comment": answer(f": {_TEXT}\ndata: {_TEXT}\n\n".encode(), kind="text/event-stream"),
    "two events": answer(f"data: {_TEXT}\n\ndata: {_TEXT}\n\n".encode(), kind="text/event-stream"),
    "events with a mark": answer(f"\ufeffdata: {_TEXT}\n\n".encode(), kind="text/event-stream"),
    "huge": answer(
        json.dumps({**_RESULT, "result": {"tools": [{"name": name, "x": "x" * 400_000} for name in TOOLS]}}).encode()
    ),
}


@pytest.mark.parametrize("name", _ANSWERS)
@pytest.mark.parametrize("who", ["narrow", "broad", "asked"])
def test_no_list_shows_a_tool_that_may_not_be_called(agents: AgentBench, who: str, name: str) -> None:
    may = {"narrow": {"add"}}.get(who, {"add", "sub"})
    for asked in (LIST, [LIST, {**LIST, "id": 2}], [LIST]):
        agents.servers["maths"].script = lambda _: _ANSWERS[name]
        called = agents.call(who, asked)
        if name == "a comment":
            continue  # a client ignores a comment, which passes unchanged
        assert set(_listed(called)) <= may, called
        assert called.status in (200, 201, 202, 203, 206, 500, 502, 503)


def test_a_server_is_not_asked_to_compress_a_list(agents: AgentBench) -> None:
    arrived: list[McpArrived] = []
    agents.call("narrow", LIST, ("accept-encoding", "gzip"))
    arrived += agents.arrived
    assert [each.header("accept-encoding") for each in arrived] == [None]
