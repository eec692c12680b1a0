"""Attacks on an ambient mesh: on statements of callers, on tunnels, on what is open, and on proxies that pods share."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from eastgate.control import ambient
from eastgate.control.events import Enforced, PartlyEnforced
from eastgate.envoy.config import hbone
from eastgate.envoy.server.resources import EXTENSION, LISTENER, SECRET, ResourceKey
from eastgate.local.machine.connection import CallConnection, HttpRequest, Target
from eastgate.local.machine.http1 import Malformed
from eastgate.local.machine.wire import Wire
from tests.attacks.ambient import (
    AMBIENT,
    AUTHORITY,
    CONNECT,
    GET_API,
    NODE,
    OPEN_POD,
    WAYPOINT,
    WORLD,
    Application,
    application,
    authority,
    service,
    statement,
    status,
    tunnel_ends,
    write,
)
from tests.attacks.frames import (
    ACK,
    END_HEADERS,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    Answers,
    Field,
    frame,
    literal,
    opening,
    request,
)
from tests.faults.certificates import Forge, tls_context
from tests.faults.hammering import hammering
from tests.faults.meshes import SERVER, Running, running, until
from tests.faults.test_rejected import Spoiler
from tests.faults.worlds import HTTP, RAW, Manifest, allow, deny, sa, world
from tests.local.machine.calling import call
from tests.patience import PATIENCE

_PARTNER = "partner.example"
_THIRD = "shop/server2"
_GET_ADMIN = b"GET /admin HTTP/1.1\r\nhost: h\r\n\r\n"

# Statements and certificates


def _federated() -> tuple[Forge, Forge]:
    ours, theirs = Forge.of(), Forge.of(_PARTNER)
    ours.authority.federate(_PARTNER, theirs.authority.bundles.of_domain(_PARTNER))
    return ours, theirs


async def test_only_a_certificate_with_the_one_name_of_the_waypoint_states_callers() -> None:
    ours, theirs = _federated()
    async with running(*WORLD, application("api", "alice"), settings=AMBIENT, source=ours.authority) as mesh:
        waypoint = mesh.mesh.waypoints[WAYPOINT].waypoint.identity
        friend = f"spiffe://{_PARTNER}/friend"
        wrong = {
            "of two domains, signed by ours": ours.forged(waypoint, friend),
            "of two domains, signed by the other": theirs.forged(friend, waypoint),
            "of the waypoint, signed by another domain": theirs.forged(waypoint),
            "of the waypoint, signed by itself": ours.forged(waypoint, self_signed=True),
            "of the waypoint and another account": ours.forged(waypoint, sa("alice")),
            "of the waypoint twice": ours.forged(waypoint, waypoint),
            "of the waypoint and more": ours.forged(f"{waypoint},x"),
            "of the waypoint, for servers": ours.forged(waypoint, for_clients=False),
            "of the waypoint of another namespace": ours.forged(waypoint.replace("/shop/", "/other/")),
            "of the waypoint of another domain": theirs.forged(waypoint.replace("cluster.local", _PARTNER)),
            "of the waypoint, in capitals": ours.forged(waypoint.replace("eastgate", "EASTGATE")),
        }
        stated = [CONNECT, (AUTHORITY, authority(mesh)), *statement(sa("alice"))]
        behind = tunnel_ends(mesh)["behind"]
        for name, forged in wrong.items():
            tls = tls_context(ours.authority.bundles, forged)
            assert not (await write(mesh, behind, stated, tls)).arrived, name
        tls = tls_context(ours.authority.bundles, ours.forged(waypoint))
        assert (await write(mesh, behind, stated, tls)).arrived


async def test_forged_statements_are_logged_with_the_name_of_who_made_them() -> None:
    async with running(*WORLD, application("api", "alice"), settings=AMBIENT) as mesh:
        stated = [CONNECT, (AUTHORITY, authority(mesh)), *statement(sa("alice"))]
        for end in ("behind", "waypoint"):
            assert (await write(mesh, tunnel_ends(mesh)[end], stated)).status == 403

        def refused() -> set[tuple[str, str | None]]:
            return {(each.workload, each.peer) for each in mesh.seen() if not each.allowed}

        await until(lambda: refused() == {(SERVER, sa("bob")), (WAYPOINT, sa("bob"))})


async def test_certificates_that_no_client_should_have_open_nothing() -> None:
    ours, theirs = _federated()
    policies = [application("api", "alice"), allow("named", "alice", app="server1")]
    async with running(*WORLD, *policies, settings=AMBIENT, source=ours.authority) as mesh:
        made = {
            "none": None,
            "for servers": ours.forged(sa("alice"), for_clients=False),
            "without a URI": ours.forged(dns=["alice.shop"]),
            "with two URIs": ours.forged(sa("alice"), sa("bob")),
            "with one URI twice": ours.forged(sa("alice"), sa("alice")),
            "with a comma": ours.forged(f"{sa('bob')},{sa('alice')}"),
            "of another domain": theirs.forged(sa("alice")),
            "of two domains": theirs.forged(f"spiffe://{_PARTNER}/x", sa("alice")),
            "expired": ours.forged(sa("alice"), expired=True),
            "the word for nobody": ours.forged("none"),
        }
        ends = tunnel_ends(mesh)
        tries = [(ends["waypoint"], authority(mesh)), (ends["without"], authority(mesh, OPEN_POD))]
        for to, called in tries:
            for name, forged in made.items():
                tls = tls_context(ours.authority.bundles, forged)
                assert not (await write(mesh, to, [CONNECT, (AUTHORITY, called)], tls)).arrived, name
            tls = tls_context(ours.authority.bundles, ours.forged(sa("alice")))
            assert (await write(mesh, to, [CONNECT, (AUTHORITY, called)], tls)).arrived


async def test_a_caller_known_by_its_address_keeps_its_name_on_the_way_to_a_waypoint() -> None:
    policies = [application("all"), application("not", "server1", action="DENY")]
    async with running(*WORLD, *policies, settings=AMBIENT, by_address=True) as mesh:
        site = mesh.mesh.sites[SERVER]
        denied = mesh.mesh.sites[OPEN_POD].address
        target = Target(site.address, site.ports[HTTP])
        called = await call(target, source_address=denied, request=HttpRequest(path="/api/x"))
        assert called.status == 403
        assert (await call(target, request=HttpRequest(path="/api/x"))).status == 200


# Requests for tunnels


def _requests(open_pod: bytes, server: bytes) -> Iterator[tuple[str, list[Field]]]:
    """Yield requests to the node proxy of the pod without a waypoint."""
    address, _, port = open_pod.partition(b":")
    target: list[Field] = [(AUTHORITY, open_pod)]
    rest: list[Field] = [(b":scheme", b"http"), (b":path", b"/api/x")]
    for method in (b"GET", b"connect", b"CONNECT ", b"OPTIONS", b""):
        yield f"the method {method!r}", [(b":method", method), *target, *rest]
    yield "a path", [CONNECT, *target, *rest]
    for protocol in (b"websocket", b"CONNECT", b"connect-udp", b"connect-ip", b"h2c"):
        yield f"extended, {protocol!r}", [CONNECT, (b":protocol", protocol), *target, *rest]
    for called in (
        *(b"x@" + open_pod, open_pod + b"@" + server, open_pod + b"," + server, open_pod + b" ", open_pod + b"\0"),
        *(address, address + b":", address + b":0" + port, address + b":+" + port, address + b".:" + port),
        *(b"[::ffff:" + address + b"]:" + port, b"[" + address + b"]:" + port, b"0x7f000001:" + port, b"*", b""),
        *(address + b":15008", b"127.0.0.1:15008", b"localhost:" + port, b"http://" + open_pod, server),
        *(open_pod + b"/", open_pod + b"#", address + b":65536", b"server1.shop:" + port, b":" + port),
    ):
        yield f"the authority {called!r}", [CONNECT, (AUTHORITY, called)]
    yield "no authority", [CONNECT]
    yield "a host alone", [CONNECT, (b"host", open_pod)]
    yield "the host right", [CONNECT, (AUTHORITY, server), (b"host", open_pod)]
    yield "two authorities", [CONNECT, *target, (AUTHORITY, server)]
    yield "two authorities, the right one last", [CONNECT, (AUTHORITY, server), *target]
    yield "two methods", [CONNECT, (b":method", b"GET"), *target]
    yield "capitals", [(b":Method", b"CONNECT"), *target]
    yield "a late pseudo-header", [(b"x", b"y"), CONNECT, *target]
    yield "a pseudo-header of answers", [CONNECT, *target, (b":status", b"200")]
    yield "connection", [CONNECT, *target, (b"connection", b"x-eastgate-caller")]
    yield "transfer-encoding", [CONNECT, *target, (b"transfer-encoding", b"chunked")]
    for name in (b"x-eastgate-caller", b"x-eastgate-address", b"x-eastgate-source", b"X-Eastgate-Caller"):
        for value in (b"", b"none", sa("alice").encode()):
            yield f"{name!r} as {value!r}", [CONNECT, *target, (name, value)]


async def test_a_tunnel_leads_only_where_its_one_well_formed_authority_says() -> None:
    async with running(*WORLD, application("api", "alice"), settings=AMBIENT) as mesh:
        ends, open_pod, server = tunnel_ends(mesh), authority(mesh, OPEN_POD), authority(mesh)
        for name, headers in _requests(open_pod, server):
            assert not (await write(mesh, ends["without"], headers)).arrived, name
        for name, headers in _requests(server, open_pod):
            tries = [write(mesh, ends[end], headers, "alice") for end in ("waypoint", "behind")]
            assert not any(each.arrived for each in await asyncio.gather(*tries)), name
        assert (await write(mesh, ends["without"], [CONNECT, (AUTHORITY, open_pod)])).arrived
        assert (await write(mesh, ends["waypoint"], [CONNECT, (AUTHORITY, server)], "alice")).arrived
        beside: list[Field] = [CONNECT, (AUTHORITY, open_pod), (b"host", server)]
        assert b"shop/server1" in (await write(mesh, ends["without"], beside)).body


@pytest.mark.parametrize("protocols", [(), ("http/1.1",), ("h2", "http/1.1"), ("istio", "h2")])
async def test_where_tunnels_end_nothing_but_http2_is_spoken(protocols: tuple[str, ...]) -> None:
    async with running(*WORLD, application("api", "alice"), settings=AMBIENT) as mesh:
        for end, called in (("waypoint", SERVER), ("behind", SERVER), ("without", OPEN_POD)):
            to, at = tunnel_ends(mesh)[end], authority(mesh, called)
            for data in (
                b"CONNECT " + at + b" HTTP/1.1\r\nhost: " + at + b"\r\n\r\n" + GET_API,
                GET_API,
                b"GET /api/x HTTP/1.1\r\nhost: h\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\n\r\n",
                b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + opening() + request(CONNECT, (AUTHORITY, at), data=GET_API),
            ):
                assert not (await write(mesh, to, data, "alice", protocols=protocols)).arrived, data
            assert (await call(Target(*to), request=HttpRequest(method="CONNECT", path=at.decode()))).status == 0


async def test_what_is_inside_a_tunnel_opens_no_other() -> None:
    async with running(*WORLD, application("api", "alice", path=None), settings=AMBIENT) as mesh:
        open_pod = authority(mesh, OPEN_POD)
        policies = [application("api", "alice"), deny("no-bob", "bob", app="server1")]
        await mesh.change(*WORLD, *policies)
        connect = b"CONNECT " + open_pod + b" HTTP/1.1\r\nhost: " + open_pod + b"\r\n\r\n" + GET_API
        absolute = b"GET http://" + open_pod + b"/admin HTTP/1.1\r\nhost: " + open_pod + b"\r\n\r\n"
        for inside in (connect, absolute, opening() + request(CONNECT, (AUTHORITY, open_pod), data=GET_API)):
            headers: list[Field] = [CONNECT, (AUTHORITY, authority(mesh))]
            outcome = await write(mesh, tunnel_ends(mesh)["waypoint"], headers, "alice", inside=inside)
            assert outcome.status == 200
            assert not outcome.arrived, inside


# Connections without mTLS


async def test_bytes_before_or_in_place_of_a_request_say_nothing_of_who_it_is() -> None:
    async with running(*WORLD, application("api", "alice"), settings=AMBIENT) as mesh:
        site = mesh.mesh.sites[SERVER]
        stated = b"".join(name + b": " + value + b"\r\n" for name, value in statement(sa("alice")))
        binary = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\1\x7f\0\0\1\0\1\0\1"
        connect = request(CONNECT, (AUTHORITY, authority(mesh)), *statement(sa("alice")), data=GET_API)
        for data in (
            f"PROXY TCP4 {site.address} {site.address} 1 2\r\n".encode() + GET_API,
            binary + GET_API,
            GET_API[:-2] + stated + b"\r\n",
            b"CONNECT " + authority(mesh) + b" HTTP/1.1\r\nhost: h\r\n" + stated + b"\r\n" + GET_API,
            opening() + connect,
            b"\x16\x03\x01\x00\x05" + GET_API,
        ):
            called = await call(Target(site.address, site.ports[HTTP]), request=data, timeout=1)
            assert b"200 OK" not in called.body, data
        for protocols in (["h2"], ["http/1.1"], ["istio"], ["istio-peer-exchange", "h2"]):
            tls = await mesh.mesh.certificates.context(sa("alice"))
            tls.set_alpn_protocols(protocols)
            beside = Target(site.address, site.ports[HTTP])
            assert (await call(beside, tls=tls, request=HttpRequest(path="/api/x"))).status == 0


# What is open when policies change


async def _answer(connection: CallConnection, request: HttpRequest | bytes) -> int:
    try:
        await connection.send(request)
        return (await connection.response()).status
    except (OSError, EOFError, Malformed):
        return 0


async def test_a_connection_from_before_the_waypoint_does_not_get_around_it() -> None:
    async with (
        running(*WORLD, settings=AMBIENT) as mesh,
        await mesh.open("alice") as alice,
        await mesh.open(None) as nobody,
        await mesh.open("bob") as raw,
    ):
        for connection in (alice, nobody):
            assert await _answer(connection, HttpRequest(path="/admin")) == 200
        await raw.send(b"\0")
        assert (await raw.raw(enough=1)).body == b"\0"
        await mesh.change(*WORLD, application("api", "carol"))
        for connection in (alice, nobody):
            assert await _answer(connection, HttpRequest(path="/admin")) == 0
        await raw.send(b"\1")
        assert not (await raw.raw(enough=1)).body


_ONLY_BOB = (allow("net", "bob"), application("api", "bob"))


@pytest.mark.parametrize("keeps_waypoint", [False, True])
async def test_a_caller_who_is_always_denied_is_so_while_a_pod_gets_or_loses_its_waypoint(keeps_waypoint: bool) -> None:
    network, requests = _ONLY_BOB
    others = [service("server1"), application("other", to="server1")] if keeps_waypoint else []
    base = [*WORLD, *others]
    async with running(*base, requests, settings=AMBIENT) as mesh:
        tls, site = await mesh.mesh.certificates.context(sa("alice")), mesh.mesh.sites[SERVER]
        at = mesh.mesh.waypoints[WAYPOINT].waypoint.address
        ends = {"node": (site.address, site.tunnel), "waypoint": (at.host, at.port), "plain": None}

        def calls(through: tuple[str, int] | None) -> Any:
            async def make() -> int:
                target = Target(site.address, site.ports[HTTP], through=through)
                context = tls if through is not None else None
                return (await call(target, tls=context, request=HttpRequest(path="/api/x"))).status

            return make

        async with hammering({name: calls(through) for name, through in ends.items()}) as answers:
            for _ in range(12):
                for policy in (network, requests):
                    await mesh.change(*base, policy)
                    await answers.more("node", 3)
        for name in ends:
            assert answers.only(name, 0, 403, 503), (name, answers.of)


_UPGRADE = (
    b"GET /api/ws HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
_UPLOAD = b"POST /api/x HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n1"


@pytest.mark.parametrize("level", ["network", "application"])
async def test_a_revoked_caller_keeps_nothing_open_behind_a_waypoint(level: str) -> None:
    both, bob = application("api", "alice", "bob"), application("api", "bob")
    before = [both, allow("known", "alice", "bob")]
    after = [both, allow("known", "bob")] if level == "network" else [bob, before[1]]
    app = Application()
    async with running(*WORLD, *before, settings=AMBIENT, apps={HTTP: app}) as mesh:
        idle, upload, socketed = [await mesh.open("alice") for _ in range(3)]
        kept = await mesh.open("bob")
        assert [await _answer(each, HttpRequest(path="/api/x")) for each in (idle, kept)] == [200, 200]
        await upload.send(_UPLOAD)
        await socketed.send(_UPGRADE)
        assert b"101" in (await socketed.raw(enough=12)).body
        await mesh.change(*WORLD, *after)
        assert await _answer(idle, HttpRequest(path="/api/x")) in (0, 403)
        for each, rest in ((upload, b"2"), (socketed, b"more")):
            await each.raw(PATIENCE)  # until it is closed
            await each.send(rest)
            assert not (await each.raw()).body
        assert await _answer(kept, HttpRequest(path="/api/x")) == 200
        for each in (idle, upload, socketed, kept):
            await each.close()


async def test_a_revoked_caller_loses_connections_that_are_not_http() -> None:
    base = [*world(RAW), service("server", RAW)]
    async with running(*base, application("all", "alice", "bob", path=None), settings=AMBIENT) as mesh:
        assert WAYPOINT in mesh.mesh.waypoints
        async with await mesh.open("alice", RAW) as alice, await mesh.open("bob", RAW) as bob:
            for connection in (alice, bob):
                await connection.send(b"\0")
                assert (await connection.raw(enough=1)).body == b"\0"
            await mesh.change(*base, application("all", "bob", path=None))
            for connection, echoed in ((alice, b""), (bob, b"\1")):
                await connection.send(b"\1")
                assert (await connection.raw(enough=1)).body == echoed


# Names


def _deployment(namespace: str, name: str) -> list[Manifest]:
    metadata = {"name": name, "namespace": namespace}
    container = {"name": "main", "image": name, "ports": [{"containerPort": HTTP}]}
    labels = {"app": "named"}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
    ]


@pytest.mark.parametrize(
    "name", ["node/local", "waypoint/shop", "hbone/shop", "shop/8080", "tunnel/shop", "shop/server-8080", "svid/shop"]
)
async def test_a_workload_with_the_name_of_something_else_takes_nothing_from_others(name: str) -> None:
    named = _deployment(*name.split("/"))
    async with running(*WORLD, *named, application("api", "alice"), settings=AMBIENT) as mesh:
        assert set(mesh.mesh.nodes) == {NODE, WAYPOINT}
        assert [await status(mesh, "alice"), await status(mesh, "alice", "/admin")] == [200, 403]
        assert await status(mesh, "bob", workload=OPEN_POD) == 200
        assert await status(mesh, "bob", workload=name) == 200
        assert not mesh.mesh.enforcement.closed


async def test_a_pod_that_wants_the_port_of_tunnels_closes_that_port_and_no_other() -> None:
    async with running(*world(HTTP, 15008), service("server"), application("api"), settings=AMBIENT) as mesh:
        assert {port for _, port in mesh.mesh.enforcement.closed} <= {15008}
        assert await status(mesh, "alice") == 200


# What proxies share

_PARTS: list[tuple[str, ResourceKey]] = [
    ("pod_port_resources", (LISTENER, f"connections/{SERVER}/{HTTP}")),
    ("pod_port_resources", (LISTENER, f"inbound/{SERVER}/{HTTP}")),
    ("pod_port_resources", (LISTENER, f"tunnelled/{SERVER}/{HTTP}")),
    ("waypoint_port_resources", (LISTENER, f"connections/{SERVER}/{HTTP}")),
    ("waypoint_port_resources", (LISTENER, f"requests/{SERVER}/{HTTP}")),
    ("waypoint_port_resources", (EXTENSION, f"{SERVER}/{HTTP}/requests")),
]
_SHARED_WORLD = [*world(servers=3), service("server"), service("server1")]


def _spoiled(monkeypatch: pytest.MonkeyPatch, maker: str) -> Spoiler:
    spoiler, made = Spoiler(), getattr(ambient, maker)
    monkeypatch.setattr(ambient, maker, lambda *arguments: map(spoiler, made(*arguments)))
    return spoiler


@pytest.mark.parametrize(("maker", "key"), _PARTS, ids=lambda each: each if isinstance(each, str) else each[1])
async def test_a_rejected_part_of_a_pod_closes_that_pod_alone(
    monkeypatch: pytest.MonkeyPatch, maker: str, key: ResourceKey
) -> None:
    spoiler = _spoiled(monkeypatch, maker)
    before = [application("one", "alice"), application("two", "alice", to="server1")]
    after = [application("one", "bob"), application("two", "bob", to="server1"), allow("known", "bob")]
    async with running(*_SHARED_WORLD, *before, settings=AMBIENT) as mesh:
        assert [await status(mesh, "alice"), await status(mesh, "alice", workload=OPEN_POD)] == [200, 200]
        spoiler.keys = {key}
        assert isinstance(await mesh.change(*_SHARED_WORLD, *after), PartlyEnforced)
        assert [await status(mesh, who) for who in ("alice", "carol", None)] == [0, 0, 0]
        assert await status(mesh, "bob") in (0, 503)
        assert [await status(mesh, who, workload=OPEN_POD) for who in ("alice", "bob")] == [403, 200]
        assert await status(mesh, "carol", workload=_THIRD) == 200
        spoiler.keys = set()
        again = [application("one", "bob"), application("more", "bob", path="/new"), allow("known", "bob", "carol")]
        assert isinstance(await mesh.change(*_SHARED_WORLD, *again), Enforced)
        assert [await status(mesh, "bob"), await status(mesh, "alice")] == [200, 0]


async def test_a_waypoint_that_is_gone_leaves_no_closed_port(monkeypatch: pytest.MonkeyPatch) -> None:
    spoiler = _spoiled(monkeypatch, "waypoint_port_resources")
    async with running(*WORLD, application("api", "alice"), settings=AMBIENT) as mesh:
        spoiler.keys = {(EXTENSION, f"{SERVER}/{HTTP}/requests")}
        await mesh.change(*WORLD, application("api", "bob"))
        assert mesh.mesh.enforcement.closed
        await mesh.change(*WORLD)
        assert not mesh.mesh.enforcement.closed
        assert mesh.metric("eastgate_not_enforced") == 0


async def test_a_node_proxy_has_no_keys_of_pods_that_are_gone() -> None:
    async with running(*WORLD, settings=AMBIENT) as mesh:
        await mesh.change(*world())
        keys = mesh.mesh.store.of_type(NODE, SECRET)
        assert set(keys) == {"trust", f"svid/{SERVER}"}


async def test_callers_that_read_nothing_keep_nobody_else_waiting() -> None:
    app, loop = Application(), asyncio.get_running_loop()
    async with running(*WORLD, application("public"), settings=AMBIENT, apps={HTTP: app}) as mesh:
        site, silent = mesh.mesh.sites[SERVER], []
        for _ in range(40):
            each = socket.socket()
            silent.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.setblocking(False)
            await loop.sock_connect(each, (site.address, site.ports[HTTP]))
            await loop.sock_sendall(each, b"GET /api/big HTTP/1.1\r\nhost: h\r\n\r\n")
        await asyncio.sleep(2)  # until the windows are full
        assert [await status(mesh, None) for _ in range(3)] == [200] * 3
        for each in silent:
            each.close()


def _floods(called: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what one client may send to make a proxy work or remember."""
    header = b"".join(literal(*field) for field in (CONNECT, (AUTHORITY, called)))
    opened = b"".join(frame(HEADERS, END_HEADERS, number, header) for number in range(1, 4001, 2))
    yield "streams", opening() + opened
    resets = (
        frame(HEADERS, END_HEADERS, number, header) + frame(RST_STREAM, 0, number, b"\0\0\0\10")
        for number in range(1, 4001, 2)
    )
    yield "streams that are reset", opening() + b"".join(resets)
    yield "settings", opening() + frame(SETTINGS, 0, 0, b"\0\1\0\0\0\0") * 20_000
    yield "pings", opening() + frame(PING, 0, 0, b"\0" * 8) * 20_000
    yield "acknowledgements", opening() + frame(SETTINGS, ACK, 0) * 20_000
    yield "no window", opening(b"\0\4\0\0\0\0") + opened
    big = literal(b"x", b"y" * 16_000)
    yield "big headers", opening() + frame(HEADERS, 0, 1, header) + frame(9, 0, 1, big) * 100
    yield "empty continuations", opening() + frame(HEADERS, 0, 1, header) + frame(9, 0, 1) * 20_000


async def test_floods_of_one_client_end_nothing_of_others() -> None:
    async with running(*WORLD, application("api", "alice"), settings=AMBIENT) as mesh:
        proxies = [mesh.mesh.proxies.process(name) for name in (NODE, WAYPOINT)]
        for end, workload in (("waypoint", SERVER), ("without", OPEN_POD)):
            for name, data in _floods(authority(mesh, workload)):
                await write(mesh, tunnel_ends(mesh)[end], data, "bob")
                assert await status(mesh, "alice") == 200, name
                assert await status(mesh, "carol", workload=OPEN_POD) == 200, name
        assert [mesh.mesh.proxies.process(name) for name in (NODE, WAYPOINT)] == proxies


async def test_tunnels_to_one_pod_do_not_use_up_the_sockets_of_the_node_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hbone, "_MOST_CONNECTIONS", 100)
    async with running(*WORLD, application("api", "alice"), settings=AMBIENT) as mesh:
        proxy: Any = mesh.mesh.proxies.process(NODE)
        resource.prlimit(proxy.pid, resource.RLIMIT_NOFILE, (1000, 1000))
        called = b"".join(literal(*field) for field in (CONNECT, (AUTHORITY, authority(mesh, OPEN_POD))))
        streams = b"".join(frame(HEADERS, END_HEADERS, number, called) for number in range(1, 1999, 2))
        to, wires = tunnel_ends(mesh)["without"], []
        for _ in range(2):
            tls = await mesh.mesh.certificates.context(sa("bob"))
            tls.set_alpn_protocols(["h2"])
            wires.append(await Wire.open(to, None, tls, to[0]))
            await wires[-1].write(opening() + streams)
        await asyncio.sleep(1)  # until all are there
        assert await status(mesh, "alice") == 200
        assert mesh.mesh.proxies.process(NODE) is proxy
        for wire in wires:
            await wire.close()


async def test_headers_of_a_tunnel_that_never_end_do_not_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hbone, "HEADERS", "1s")
    hbone._tunnel_listener.cache_clear()
    async with running(*WORLD, application("api", "alice"), settings=AMBIENT) as mesh:
        for to in tunnel_ends(mesh).values():
            tls = await mesh.mesh.certificates.context(sa("bob"))
            tls.set_alpn_protocols(["h2"])
            wire = await Wire.open(to, None, tls, to[0])
            await wire.write(opening() + frame(HEADERS, 0, 1, literal(*CONNECT)))
            answers = Answers()
            try:
                while not answers.ended and (piece := await wire.read(65536)):
                    answers.hear(piece)
            finally:
                await wire.close()
            assert answers.status(1) == 408
    hbone._tunnel_listener.cache_clear()


async def test_headers_of_envoy_name_no_statistics() -> None:
    async with running(*WORLD, application("api", "alice"), settings=AMBIENT) as mesh:
        called = authority(mesh, OPEN_POD)
        for sender in ([], [(b"x-forwarded-for", b"127.0.0.1")], [(b"x-envoy-internal", b"true")]):
            named = [(b"x-envoy-upstream-alt-stat-name", b"planted"), *sender]
            assert (await write(mesh, tunnel_ends(mesh)["without"], [CONNECT, (AUTHORITY, called), *named])).arrived
        assert b"planted" not in await _statistics(mesh)


async def _statistics(mesh: Running) -> bytes:
    reader, writer = await asyncio.open_unix_connection(mesh.mesh.rundir.socket(f"admin {NODE}"))
    try:
        writer.write(b"GET /stats HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n")
        return await reader.read(-1)
    finally:
        writer.transport.abort()
