"""A configuration that a proxy rejects changes nothing there, is told with the policy at fault, and can be mended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from envoy.config.core.v3 import extension_pb2
from envoy.config.listener.v3 import listener_pb2
from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message

from eastgate.mesh import enforcement
from eastgate.mesh.events import NotEnforced
from eastgate.targets.envoy import PortPlan
from eastgate.xds import sidecar
from eastgate.xds.clusters import Address
from eastgate.xds.doors import Door
from eastgate.xds.server.resources import EXTENSION, LISTENER, Resource, short
from tests.faults.meshes import SERVER, Running, running
from tests.faults.worlds import HTTP, Manifest, allow, world

_BASE = [*world(HTTP, servers=2), allow("all", "alice"), allow("second", "alice", app="server1")]
_API = allow("api", "alice", paths=["/api/*"])
_BAD = "AuthorizationPolicy.gateway.networking.x-k8s.io/shop/bad"


def bad(*accounts: str, **more: object) -> Manifest:
    return allow("bad", *(accounts or ("alice",)), **more)


@pytest.fixture
def spoiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emitter makes something that no proxy takes, in one place, where the policy `bad` is in it."""

    def spoil(one: Resource) -> Resource:
        wrong: Message = extension_pb2.TypedExtensionConfig(name=one.name, typed_config=Any(type_url="a/no.Such"))
        if one.type_url == LISTENER:
            wrong = listener_pb2.Listener(name=one.name)
        return replace(one, body=wrong.SerializeToString())

    def resources(*arguments: Door | PortPlan | Address) -> Iterator[Resource]:
        for one in sidecar.inbound_resources(*arguments):  # type: ignore[arg-type]
            yield spoil(one) if _BAD in one.policies and one.key == request.param else one

    monkeypatch.setattr(enforcement, "inbound_resources", resources)


_requests = pytest.mark.parametrize("spoiled", [(EXTENSION, f"{HTTP}/requests")], ids=["requests"], indirect=True)
_connections = pytest.mark.parametrize(
    "spoiled", [(LISTENER, f"connections/{HTTP}")], ids=["connections"], indirect=True
)


def _rejections(mesh: Running, type_url: str) -> float:
    return mesh.metric("eastgate_xds_rejections_total", type=short(type_url), policy=_BAD)


@_requests
async def test_a_rejected_rule_for_requests_leaves_the_old_ones_in_force(spoiled: None) -> None:
    async with running(*_BASE, _API) as mesh:
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/new")) == (200, 403)
        await mesh.change(*_BASE, _API, bad(paths=["/new"]))
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/new")) == (200, 403)
        [told] = mesh.told(NotEnforced)
        assert (told.workload, told.policies) == (SERVER, (_BAD,))
        assert told.message
        assert _rejections(mesh, EXTENSION) == 1
        # All others are updated meanwhile: another proxy, and who may connect at all.
        more = [*_BASE, allow("bob", "bob"), allow("second-bob", "bob", app="server1")]
        await mesh.change(*more, _API, bad(paths=["/new"]))
        assert (await mesh.call("bob", workload="shop/server1")).status == 200
        assert await mesh.get("bob", "/api/x") == 403
        assert _rejections(mesh, EXTENSION) == 1, "it was not tried again"
        await mesh.change(*_BASE, _API, allow("mended", "alice", paths=["/new"]))
        assert (await mesh.get("alice", "/new"), await mesh.get("bob", "/new")) == (200, 0)
        status = mesh.mesh.server.status(SERVER)
        assert status is not None
        assert not status.rejected


@_connections
async def test_a_rejected_rule_for_connections_leaves_the_old_ones_in_force(spoiled: None) -> None:
    async with running(*_BASE) as mesh, await mesh.open("alice") as connection:
        await connection.send(b"x")
        assert (await connection.raw(2, enough=1)).body == b"x"
        await mesh.change(*_BASE, bad("bob"))
        assert {(told.workload, told.policies) for told in mesh.told(NotEnforced)} == {(SERVER, (_BAD,))}
        assert _rejections(mesh, LISTENER) >= 1
        assert (await mesh.call("bob", b"x")).status == 0
        assert (await mesh.call("alice", b"x")).body == b"x"
        assert not await connection.peer_closed(1.5)
        await mesh.change(*_BASE, allow("mended", "bob"))
        assert (await mesh.call("bob", b"x")).body == b"x"


@_requests
async def test_a_policy_that_is_rejected_from_the_beginning_closes_its_port(spoiled: None) -> None:
    """A proxy that never had anything better has nothing to stay with, and answers nobody."""
    async with running(*_BASE, bad(paths=["/new"])) as mesh:
        assert (await mesh.get("alice", "/new")) in (0, 500)
        assert (await mesh.call("alice", workload="shop/server1")).status == 200
        [told] = mesh.told(NotEnforced)
        assert _BAD in told.policies
        await mesh.change(*_BASE, _API)
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/new")) == (200, 403)
