"""An open request ends when the policies stop allowing it. All others continue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import pytest

from eastgate.control.events import Enforced
from eastgate.local.machine.connection import CallConnection
from eastgate.settings import OpenRequests, Settings
from tests.faults.answering import Answering
from tests.faults.meshes import Running, running
from tests.faults.recorder import Recorder
from tests.faults.worlds import HTTP, Manifest, allow, deny, sa, world

_BASE = [*world(), allow("connect", "alice", "bob")]
_BOTH = [*_BASE, allow("alice", "alice", paths=["/api/*"]), allow("bob", "bob", paths=["/api/*"])]
_UPGRADE = b"GET %b HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n%b\r\n"
_END_SECONDS = 15.0
_REPORTS_SECONDS = 2.5  # a proxy reports an open request several times in this time


@dataclass
class Held:
    """An open request, with a task that reads the answer and, for a talking kind, one that sends."""

    name: str
    connection: CallConnection
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return self.connection.closed_at is None

    async def ends(self) -> bool:
        return await self.connection.peer_closed(_END_SECONDS)


async def _read(connection: CallConnection) -> None:
    while connection.closed_at is None:
        await connection.raw(1, enough=1)


async def _speak(connection: CallConnection, data: bytes) -> None:
    while connection.closed_at is None:
        await connection.send(data)
        await asyncio.sleep(0.1)


def _first(kind: str, path: bytes) -> bytes:
    match kind:
        case "idle websocket" | "talking websocket":
            return _UPGRADE % (path + b"/echo/1", b"")
        case "pushed websocket":
            return _UPGRADE % (path + b"/push/1", b"")
        case "streaming answer":
            return b"GET %b/endless/1000 HTTP/1.1\r\nhost: a\r\n\r\n" % path
        case _:
            return b"POST %b/sized/1 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" % path


_SAYS = {"talking websocket": b"hello", "long upload": b"5\r\nhello\r\n"}
_KINDS = ("idle websocket", "pushed websocket", "talking websocket", "streaming answer", "long upload")


@asynccontextmanager
async def holding(
    mesh: Running, who: str | None, path: bytes = b"/api", kinds: Any = _KINDS
) -> AsyncIterator[list[Held]]:
    held: list[Held] = []
    try:
        for kind in kinds:
            one = Held(f"{kind} of {who} at {path.decode()}", await mesh.open(who))
            held.append(one)
            await one.connection.send(_first(kind, path))
            if kind != "long upload":
                started = (await one.connection.raw(_END_SECONDS, enough=12)).body
                assert started.startswith((b"HTTP/1.1 101", b"HTTP/1.1 200")), (one.name, started)
            one.tasks.append(asyncio.create_task(_read(one.connection)))
            if kind in _SAYS:
                one.tasks.append(asyncio.create_task(_speak(one.connection, _SAYS[kind])))
        yield held
    finally:
        for one in held:
            for task in one.tasks:
                task.cancel()
            await one.connection.close()


async def _ended(held: list[Held]) -> list[str]:
    """Return the kinds of the requests that have not ended."""
    ends = await asyncio.gather(*(one.ends() for one in held))
    return [one.name for one, ended in zip(held, ends, strict=True) if not ended]


def _admin(path: str) -> Manifest:
    rule = {"authorizationSource": {"serviceAccounts": ["shop/bob"]}, "applicationAttributes": {"paths": [path]}}
    return {
        "apiVersion": "eastgate.dev/v1alpha1",
        "kind": "ClusterAuthorizationPolicy",
        "metadata": {"name": "admin"},
        "spec": {
            "tier": "Admin",
            "priority": 1,
            "action": "DENY",
            "enforcementLevel": "APPLICATION",
            "rules": [rule],
        },
    }


_REVOKED: dict[str, list[Manifest]] = {
    "an ALLOW is removed": [*_BASE, allow("alice", "alice", paths=["/api/*"])],
    "an ALLOW is narrowed": [*_BASE, allow("alice", "alice", paths=["/api/*"]), allow("bob", "bob", paths=["/else/*"])],
    "a DENY is added": [*_BOTH, deny("not", "bob", paths=["/api/*"])],
    "an Admin DENY is added": [*_BOTH, _admin("/api/*")],
}


@pytest.mark.parametrize("how", _REVOKED)
async def test_what_is_not_allowed_any_more_ends_and_nothing_of_others(how: str) -> None:
    async with (
        running(*_BOTH, apps={HTTP: Answering()}) as mesh,
        holding(mesh, "alice") as alice,
        holding(mesh, "bob") as bob,
    ):
        await mesh.change(*_REVOKED[how])
        assert not await _ended(bob)
        await asyncio.sleep(_REPORTS_SECONDS)
        assert [one.name for one in alice if not one.open] == []
        assert await mesh.get("alice", "/api/sized/1") == 200


async def test_requests_that_are_still_allowed_stay_open_whatever_else_changes() -> None:
    changes = [
        [*_BOTH, deny("elsewhere", "alice", paths=["/admin/*"])],
        [*_BASE, allow("both", "alice", "bob", paths=["/api/*"])],
        [*_BASE, allow("both", "alice", "bob", paths=["/*"]), deny("elsewhere", "bob", paths=["/admin/*"])],
    ]
    async with (
        running(*_BOTH, apps={HTTP: Answering()}) as mesh,
        holding(mesh, "alice") as alice,
        holding(mesh, "bob") as bob,
    ):
        for manifests in changes:
            await mesh.change(*manifests)
            await asyncio.sleep(_REPORTS_SECONDS)
            assert [one.name for one in [*alice, *bob] if not one.open] == []


async def test_another_path_of_another_caller_stays_and_the_caller_may_come_again() -> None:
    both = [allow("alice", "alice", paths=["/api/*", "/x/*"]), allow("bob", "bob", paths=["/api/*", "/x/*"])]
    async with (
        running(*_BASE, *both, apps={HTTP: Answering()}) as mesh,
        holding(mesh, "alice", b"/x") as alice,
        holding(mesh, "bob", b"/x", _KINDS[:2]) as bob,
    ):
        await mesh.change(*_BASE, *both, deny("x", "bob", paths=["/x/*"]))
        assert not await _ended(bob)
        async with holding(mesh, "bob") as again:
            await asyncio.sleep(_REPORTS_SECONDS)
            assert [one.name for one in [*again, *alice] if not one.open] == []


async def test_what_began_just_before_the_change_is_ended_too() -> None:
    async with running(*_BOTH, apps={HTTP: Answering()}) as mesh:
        changing = asyncio.create_task(mesh.change(*_REVOKED["an ALLOW is removed"]))
        held = []
        while not changing.done():
            one = await mesh.open("bob")
            await one.send(_first("pushed websocket", b"/api"))
            held.append(one)
            await asyncio.sleep(0.005)
        for one in held:
            answer = (await one.raw(_END_SECONDS)).body
            assert answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 101")) or not answer
            await one.close()
        assert held


async def test_with_the_setting_open_requests_may_finish() -> None:
    settings = Settings(open_requests=OpenRequests.FINISH)
    async with (
        running(*_BOTH, apps={HTTP: Answering()}, settings=settings) as mesh,
        holding(mesh, "bob") as bob,
    ):
        await mesh.change(*_REVOKED["an ALLOW is removed"])
        assert await mesh.get("bob", "/api/sized/1") == 403
        await asyncio.sleep(_REPORTS_SECONDS)
        assert [one.name for one in bob if not one.open] == []


_LINKERD = "policy.linkerd.io"


def _resource(kind: str, name: str, version: str, **spec: object) -> Manifest:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": f"{_LINKERD}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def _only_for_bob(**match: object) -> list[Manifest]:
    """Return policies that allow requests with this header or query parameter to bob, and all others to alice."""
    selector = {"matchLabels": {"app": "server"}}
    found = [
        *world(),
        _resource("Server", "server", "v1beta3", podSelector=selector, port=HTTP, proxyProtocol="HTTP/1"),
    ]
    rest = {"path": {"type": "PathPrefix", "value": "/"}}
    for name, account, matches in (("special", "bob", match), ("rest", "alice", rest)):
        parent = {"group": _LINKERD, "kind": "Server", "name": "server"}
        route = {"group": _LINKERD, "kind": "HTTPRoute", "name": name}
        who = {"group": _LINKERD, "kind": "MeshTLSAuthentication", "name": account}
        identities = [{"kind": "ServiceAccount", "name": account}]
        found += [
            _resource("HTTPRoute", name, "v1beta3", parentRefs=[parent], rules=[{"matches": [matches]}]),
            _resource("AuthorizationPolicy", name, "v1alpha1", targetRef=route, requiredAuthenticationRefs=[who]),
            _resource("MeshTLSAuthentication", account, "v1alpha1", identityRefs=identities),
        ]
    return found


async def _as_alice(mesh: Running) -> CallConnection:
    """Connect from an address that Linkerd does not treat as the workload's own."""
    tls = await mesh.mesh.certificates.context(sa("alice"))
    return await CallConnection.open(mesh.target(), tls=tls, source_address=mesh.mesh.own_address)


@pytest.mark.parametrize(
    ("kind", "query", "headers"),
    [("headers", b"", b"x-team: red\r\n"), ("queryParams", b"?x-team=red", b""), ("headers", b"", b"")],
)
async def test_headers_and_queries_count_as_they_were_when_the_request_began(
    kind: str, query: bytes, headers: bytes
) -> None:
    def manifests(value: str) -> list[Manifest]:
        return _only_for_bob(**{kind: [{"name": "x-team", "value": value}]})

    async with (
        running(*manifests("blue"), apps={HTTP: Answering()}) as mesh,
        await _as_alice(mesh) as connection,
    ):
        await connection.send(_UPGRADE % (b"/api/echo/1" + query, headers))
        assert b" 101 " in (await connection.raw(_END_SECONDS, enough=12)).body
        await mesh.change(*manifests("green"))
        assert not await connection.peer_closed(_REPORTS_SECONDS)
        await mesh.change(*manifests("red"))
        assert await connection.peer_closed(_END_SECONDS if query or headers else _REPORTS_SECONDS) == bool(
            query or headers
        )


async def test_what_was_not_noted_counts_as_unknown_and_is_never_shown() -> None:
    """A header that no policy read when the request began may be present or absent."""
    async with (
        running(*_only_for_bob(path={"type": "PathPrefix", "value": "/never"}), apps={HTTP: Answering()}) as mesh,
        await _as_alice(mesh) as connection,
    ):
        await connection.send(_UPGRADE % (b"/api/echo/1", b"x-secret: hunter2\r\n"))
        assert b" 101 " in (await connection.raw(_END_SECONDS, enough=12)).body
        await mesh.change(*_only_for_bob(headers=[{"name": "x-secret", "value": "hunter2"}]))
        assert await connection.peer_closed(_END_SECONDS)
        assert "hunter2" not in repr([one for one in mesh.events if not isinstance(one, Enforced)])


class _Ticking(Recorder):
    """An application with only HTTP/2, which sends a message ten times a second without an end."""

    async def start(self) -> None:
        async def tick(_request: bytes, _context: object) -> AsyncIterator[bytes]:
            while True:
                yield b"tick"
                await asyncio.sleep(0.1)

        methods: dict[str, Any] = {"Tick": grpc.unary_stream_rpc_method_handler(tick)}
        self._grpc = grpc.aio.server()
        self._grpc.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Ticking", methods)])
        self._grpc.add_insecure_port(f"unix:{self.path}")
        await self._grpc.start()

    async def stop(self) -> None:
        await self._grpc.stop(0)


async def test_a_stream_of_http2_is_ended_as_well() -> None:
    base = [*world(), allow("connect")]
    ticking = allow("ticking", paths=["/test.Ticking/*"])
    async with (
        running(*base, ticking, apps={HTTP: _Ticking()}) as mesh,
        grpc.aio.insecure_channel(str(mesh.target())) as channel,
    ):
        method: Any = channel.unary_stream("/test.Ticking/Tick")
        call = method(b"")
        assert [await call.read() for _ in range(3)] == [b"tick"] * 3
        await mesh.change(*base, ticking, allow("elsewhere", paths=["/else/*"]))
        for _ in range(25):
            assert await call.read() == b"tick"
        await mesh.change(*base, allow("elsewhere", paths=["/else/*"]))

        async def all_of_it() -> None:
            while await call.read() is not grpc.aio.EOF:
                pass

        with pytest.raises(grpc.aio.AioRpcError):
            await asyncio.wait_for(all_of_it(), _END_SECONDS)
