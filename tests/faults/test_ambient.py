"""A local mesh in ambient mode: one proxy for all pods of the node, and a waypoint for those that need HTTP read."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Any

from eastgate.control.access_log import Observation
from eastgate.local.machine.connection import HttpRequest, Target
from eastgate.local.machine.tunnel import Tunnel
from eastgate.settings import MeshMode, Settings
from tests.faults.meshes import SERVER, Running, running, until
from tests.faults.worlds import HTTP, Manifest, allow, sa, world
from tests.local.machine.calling import call

_AMBIENT = Settings(mesh_mode=MeshMode.AMBIENT)
_OTHER = "shop/server1"
_WAYPOINT = "waypoint:shop"
_NODE = "node:local"
_SERVICE: Manifest = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "server", "namespace": "shop"},
    "spec": {"selector": {"app": "server"}, "ports": [{"port": HTTP}]},
}
_WORLD = [*world(servers=2), _SERVICE]


def _application(name: str, *accounts: str, paths: Sequence[str] = ("/api/*",)) -> Manifest:
    source = {"authorizationSource": {"serviceAccounts": list(accounts)}} if accounts else {}
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "enforcementLevel": "APPLICATION",
            "targetRefs": [{"kind": "Service", "name": "server"}],
            "action": "ALLOW",
            "rules": [{**source, "applicationAttributes": {"paths": list(paths)}}],
        },
    }


async def _statuses(mesh: Running, account: str | None, *paths: str, workload: str = SERVER) -> list[int]:
    return [(await mesh.call(account, HttpRequest(path=path), workload=workload)).status for path in paths]


async def _tunnel(
    mesh: Running, identity: str, to: tuple[str, int], authority: str, *headers: tuple[str, str]
) -> str | None:
    """The status with which a proxy takes a tunnel; None where it closes."""
    context = await mesh.mesh.certificates.context(identity)
    try:
        tunnel = await Tunnel.open(to, None, context, authority, headers)
    except OSError:
        return None
    await tunnel.close(reset=True)
    return tunnel.status


def _called(mesh: Running, workload: str) -> str:
    site = mesh.mesh.sites[workload]
    return f"{site.address}:{site.ports[HTTP]}"


def _ends(mesh: Running, workload: str) -> tuple[tuple[str, int], tuple[str, int]]:
    """Return the addresses where tunnels to a workload end: at its node proxy, and at the waypoint."""
    site, waypoint = mesh.mesh.sites[workload], mesh.mesh.waypoints[_WAYPOINT].waypoint
    return (site.address, site.tunnel), (waypoint.address.host, waypoint.address.port)


async def test_the_node_decides_connections_and_the_waypoint_requests() -> None:
    policies = [_application("api"), allow("known", "alice", "bob")]
    async with running(*_WORLD, *policies, settings=_AMBIENT) as mesh:
        assert set(mesh.mesh.nodes) == {_NODE, _WAYPOINT}
        assert await _statuses(mesh, "alice", "/api/x", "/admin") == [200, 403]
        assert await _statuses(mesh, "carol", "/api/x") == [0]
        assert await _statuses(mesh, None, "/api/x") == [0]
        assert await _statuses(mesh, "alice", "/admin", workload=_OTHER) == [200]
        assert await _statuses(mesh, "carol", "/admin", workload=_OTHER) == [200]
        assert not mesh.mesh.enforcement.closed


async def test_the_node_decides_again_about_the_caller_that_the_waypoint_states() -> None:
    async with running(*_WORLD, _application("api"), allow("known", "alice", "bob"), settings=_AMBIENT) as mesh:

        async def calls(account: str) -> None:
            for _ in range(10):
                assert await _statuses(mesh, account, "/api/x") == [200]

        await asyncio.gather(calls("alice"), calls("bob"), calls("alice"))

        def at_node() -> list[Observation]:
            return [each for each in mesh.seen() if each.level == "connection"]

        await until(lambda: {each.peer for each in at_node()} >= {sa("alice"), sa("bob")})
        assert {each.peer for each in at_node()} == {sa("alice"), sa("bob")}


async def test_only_the_waypoint_of_a_pod_states_its_callers() -> None:
    async with running(*_WORLD, _application("api"), settings=_AMBIENT) as mesh:
        waypoint = mesh.mesh.waypoints[_WAYPOINT].waypoint.identity
        node, at_waypoint = _ends(mesh, SERVER)
        other_node, _ = _ends(mesh, _OTHER)
        alice = [("x-eastgate-caller", sa("alice")), ("x-eastgate-address", "127.0.0.1"), ("x-eastgate-source", "1:1")]
        server, other = _called(mesh, SERVER), _called(mesh, _OTHER)
        assert await _tunnel(mesh, sa("carol"), node, server) == "403"
        assert await _tunnel(mesh, sa("carol"), node, server, *alice) == "403"
        assert await _tunnel(mesh, sa("carol"), other_node, other, *alice) == "403"
        assert await _tunnel(mesh, sa("carol"), at_waypoint, server, *alice) == "403"
        assert await _tunnel(mesh, sa("server"), at_waypoint, server, *alice) == "403"
        assert await _tunnel(mesh, waypoint, other_node, other, *alice) == "403"
        assert await _tunnel(mesh, waypoint, at_waypoint, server, *alice) == "403"
        for missing in range(3):
            some = [each for number, each in enumerate(alice) if number != missing]
            assert await _tunnel(mesh, waypoint, node, server, *some) == "403"
        for caller in ("", "-", "spiffe://", "alice", f"{sa('alice')},{sa('bob')}", f"none,{sa('alice')}"):
            stated = [("x-eastgate-caller", caller), *alice[1:]]
            assert await _tunnel(mesh, waypoint, node, server, *stated) == "403", caller
        assert await _tunnel(mesh, waypoint, node, server, *alice) == "200"


async def test_a_pod_states_nobody_at_its_waypoint_from_its_own_address_and_for_itself() -> None:
    async with running(*_WORLD, _application("api"), settings=_AMBIENT) as mesh:
        _, at_waypoint = _ends(mesh, SERVER)
        nobody = [("x-eastgate-caller", "none"), ("x-eastgate-address", "127.0.0.1"), ("x-eastgate-source", "1:1")]
        assert await _tunnel(mesh, sa("server"), at_waypoint, _called(mesh, SERVER), *nobody) == "403"
        assert await _tunnel(mesh, sa("alice"), at_waypoint, _called(mesh, SERVER), *nobody) == "403"


async def test_of_two_statements_both_the_rules_and_the_decision_take_the_first() -> None:
    async with running(*_WORLD, _application("api", "alice"), settings=_AMBIENT) as mesh:
        _, at_waypoint = _ends(mesh, SERVER)
        first, second = ("x-eastgate-caller", "none"), ("x-eastgate-caller", sa("alice"))
        others = [("x-eastgate-address", "127.0.0.1"), ("x-eastgate-source", "1:1")]
        context = await mesh.mesh.certificates.context(sa("server"))
        address = mesh.mesh.sites[SERVER].address
        tunnel = await Tunnel.open(at_waypoint, address, context, _called(mesh, SERVER), (second, first, *others))
        await tunnel.close(reset=True)
        assert tunnel.status == "403"
        tunnel = await Tunnel.open(at_waypoint, address, context, _called(mesh, SERVER), (first, second, *others))
        await tunnel.write(b"GET /api/x HTTP/1.1\r\nhost: h\r\n\r\n")
        assert (await tunnel.read(100)).startswith(b"HTTP/1.1 403")
        await tunnel.close(reset=True)


async def test_tunnels_lead_to_the_ports_of_the_pod_and_nowhere_else() -> None:
    async with running(*_WORLD, _application("api"), settings=_AMBIENT) as mesh:
        node, at_waypoint = _ends(mesh, SERVER)
        other_node, _ = _ends(mesh, _OTHER)
        server, other = _called(mesh, SERVER), _called(mesh, _OTHER)
        elsewhere = [f"127.0.0.1:{HTTP}", "server.shop:8080", f"{server.rpartition(':')[0]}:{node[1]}", "[::1]:80"]
        for authority in (server, *elsewhere):
            assert await _tunnel(mesh, sa("alice"), other_node, authority) == "404", authority
        for authority in (other, *elsewhere):
            assert await _tunnel(mesh, sa("alice"), at_waypoint, authority) == "404", authority


async def test_connections_beside_the_tunnels_are_nobodys() -> None:
    policies = [_application("public", paths=["/public"]), _application("api", "alice")]
    async with running(*_WORLD, *policies, settings=_AMBIENT) as mesh:
        assert await _statuses(mesh, None, "/public", "/api/x") == [200, 403]
        site = mesh.mesh.sites[SERVER]
        beside = Target(site.address, site.ports[HTTP])
        context = await mesh.mesh.certificates.context(sa("alice"))
        assert (await call(beside, tls=context, request=HttpRequest(path="/api/x"))).status == 0


async def test_a_revoked_caller_loses_its_connections_and_no_other_does() -> None:
    allowed = [_application("api"), allow("known", "alice", "bob")]
    async with running(*_WORLD, *allowed, settings=_AMBIENT) as mesh:
        async with await mesh.open("alice") as alice, await mesh.open("bob") as bob:
            for connection in (alice, bob):
                await connection.send(HttpRequest(path="/api/x"))
                assert (await connection.response()).status == 200
            await mesh.change(*_WORLD, _application("api"), allow("known", "bob"))
            assert (await alice.raw()).body == b""
            await bob.send(HttpRequest(path="/api/x"))
            assert (await bob.response()).status == 200
        assert await _statuses(mesh, "alice", "/api/x") == [0]


async def test_a_pod_gets_a_waypoint_with_its_first_policy_about_requests_and_loses_it_with_the_last() -> None:
    async with running(*_WORLD, settings=_AMBIENT) as mesh:
        assert set(mesh.mesh.nodes) == {_NODE}
        assert await _statuses(mesh, "alice", "/admin") == [200]
        await mesh.change(*_WORLD, _application("api"))
        assert await _statuses(mesh, "alice", "/api/x", "/admin") == [200, 403]
        node, _ = _ends(mesh, SERVER)
        assert await _tunnel(mesh, sa("alice"), node, _called(mesh, SERVER)) == "403"
        await mesh.change(*_WORLD)
        assert set(mesh.mesh.nodes) == {_NODE}
        assert await _statuses(mesh, "alice", "/admin") == [200]


def _kill(mesh: Running, node: str) -> None:
    process: Any = mesh.mesh.proxies.process(node)
    os.kill(process.pid, signal.SIGKILL)


async def test_without_its_waypoint_a_pod_is_closed_and_others_go_on() -> None:
    async with running(*_WORLD, _application("api"), settings=_AMBIENT) as mesh:
        assert await _statuses(mesh, "alice", "/api/x") == [200]
        before = mesh.mesh.proxies.process(_WAYPOINT)
        _kill(mesh, _WAYPOINT)
        assert await _statuses(mesh, "alice", "/admin", workload=_OTHER) == [200]
        assert await _statuses(mesh, "alice", "/admin") in ([0], [403])
        await until(lambda: mesh.mesh.proxies.process(_WAYPOINT) not in (None, before))

        async def answers() -> bool:
            return await _statuses(mesh, "alice", "/api/x") == [200]

        while not await answers():
            await asyncio.sleep(0.1)
        assert await _statuses(mesh, "alice", "/admin") == [403]


async def test_a_node_proxy_that_was_killed_comes_back_with_all_of_its_pods() -> None:
    async with running(*_WORLD, _application("api"), allow("known", "alice"), settings=_AMBIENT) as mesh:
        _kill(mesh, _NODE)

        async def answers() -> bool:
            return await _statuses(mesh, "alice", "/api/x") == [200]

        while not await answers():
            await asyncio.sleep(0.1)
        assert await _statuses(mesh, "alice", "/x", workload=_OTHER) == [200]
        assert await _statuses(mesh, "carol", "/api/x") == [0]
        assert await _statuses(mesh, "alice", "/admin") == [403]
