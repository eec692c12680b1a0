"""A resource that a proxy rejects, or that cannot be sent, closes the port. No wider policy stays in force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from envoy.config.core.v3 import extension_pb2
from envoy.config.listener.v3 import listener_pb2
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from eastgate.control import closures, enforcement, sidecars
from eastgate.control.events import Enforced, NotEnforced, PartlyEnforced
from eastgate.envoy.config import client_certificates, listeners, sidecar
from eastgate.envoy.server.resources import EXTENSION, LISTENER, SECRET, ResourceKey, XdsResource, short_type
from tests.faults.hammering import hammering
from tests.faults.meshes import SERVER, Running, running
from tests.faults.worlds import HTTP, RAW, Manifest, allow, deny, world

_BASE = [*world(HTTP, RAW, servers=2), allow("all", "alice"), allow("second", "alice", app="server1")]
_API = allow("api", "alice", paths=["/api/*"])
_BAD = "AuthorizationPolicy.gateway.networking.x-k8s.io/shop/bad"
_REQUESTS, _CONNECTIONS = (EXTENSION, f"{HTTP}/requests"), (LISTENER, f"connections/{HTTP}")
_INBOUND, _BEHIND = (LISTENER, f"inbound/{HTTP}"), (LISTENER, f"requests/{HTTP}")
_AUDIT, _TRUST = (EXTENSION, f"{HTTP}/audit"), (SECRET, "trust")


@dataclass
class Spoiler:
    """Replaces some resources with invalid ones, once they are named. `how` changes a resource."""

    keys: set[ResourceKey] = field(default_factory=set)
    policy: str | None = None  # only resources with this policy
    spoiled: int = 0

    def __call__(self, one: XdsResource) -> XdsResource:
        if one.key not in self.keys or (self.policy is not None and self.policy not in one.policies):
            return one
        self.spoiled += 1
        wrong: Message = extension_pb2.TypedExtensionConfig(
            name=one.name, typed_config=AnyMessage(type_url="a/no.Such", value=one.version.encode())
        )
        if one.type_url == LISTENER:
            wrong = listener_pb2.Listener(name=one.name, stat_prefix=one.version)
        if one.type_url == SECRET:
            return replace(one, body=one.body.replace(b"BEGIN CERTIFICATE", b"BEGIN CERTIFICATX"))
        return replace(one, body=wrong.SerializeToString())


@pytest.fixture
def spoiler(monkeypatch: pytest.MonkeyPatch) -> Spoiler:
    made = Spoiler()

    def resources(*arguments: Any) -> Iterator[XdsResource]:
        return map(made, sidecar.inbound_resources(*arguments))

    def spoil(of: Callable[..., XdsResource]) -> Callable[..., XdsResource]:
        return lambda *arguments: made(of(*arguments))

    monkeypatch.setattr(sidecars, "inbound_resources", resources)
    monkeypatch.setattr(enforcement, "trust_secret", spoil(client_certificates.trust_secret))
    return made


def bad(*accounts: str, **more: object) -> Manifest:
    return allow("bad", *(accounts or ("alice",)), **more)


def _rejections(mesh: Running, type_url: str) -> float:
    return mesh.metric("eastgate_xds_rejections_total", type=short_type(type_url), policy=_BAD)


async def test_a_rejected_rule_for_requests_closes_its_port_until_it_is_mended(spoiler: Spoiler) -> None:
    spoiler.keys, spoiler.policy = {_REQUESTS}, _BAD
    async with running(*_BASE, _API) as mesh:
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/new")) == (200, 403)
        event = await mesh.change(*_BASE, _API, bad(paths=["/new"]))
        assert isinstance(event, PartlyEnforced)
        assert event.closed == (f"{SERVER} port {HTTP}",)
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/new")) == (0, 0)
        [closed] = mesh.events_of(NotEnforced)
        assert (closed.workload, closed.port, closed.policies) == (SERVER, HTTP, (_BAD,))
        assert mesh.metric("eastgate_not_enforced", workload=SERVER, port=str(HTTP), policy=_BAD) == 1
        assert _rejections(mesh, EXTENSION) == 1
        # All others are updated meanwhile: another proxy, and another port.
        more = [*_BASE, allow("bob", "bob"), allow("second-bob", "bob", app="server1")]
        event = await mesh.change(*more, _API, bad(paths=["/new"]))
        assert isinstance(event, PartlyEnforced)
        assert (await mesh.call("bob", workload="shop/server1")).status == 200
        assert await mesh.get("bob", "/api/x", RAW) == 403
        assert await mesh.get("bob", "/api/x") == 0
        event = await mesh.change(*_BASE, _API, allow("mended", "alice", paths=["/new"]))
        assert isinstance(event, Enforced)
        assert (await mesh.get("alice", "/new"), await mesh.get("bob", "/new")) == (200, 0)
        assert mesh.metric("eastgate_not_enforced") == 0
        status = mesh.mesh.server.status(SERVER)
        assert status is not None
        assert not status.rejected


async def test_a_rejected_rule_for_connections_closes_its_port_and_open_connections(spoiler: Spoiler) -> None:
    spoiler.keys, spoiler.policy = {_CONNECTIONS}, _BAD
    async with running(*_BASE) as mesh, await mesh.open("alice") as connection:
        await connection.send(b"x")
        assert (await connection.raw(5, enough=1)).body == b"x"
        assert isinstance(await mesh.change(*_BASE, bad("bob")), PartlyEnforced)
        assert [(one.workload, one.policies) for one in mesh.events_of(NotEnforced)] == [(SERVER, (_BAD,))]
        assert (await mesh.call("bob", b"x")).status == 0
        assert (await mesh.call("alice", b"x")).status == 0
        assert await connection.peer_closed(10)
        assert isinstance(await mesh.change(*_BASE, allow("mended", "bob")), Enforced)
        assert (await mesh.call("bob", b"x")).body == b"x"


async def test_what_was_rejected_stays_closed_when_it_comes_again(spoiler: Spoiler) -> None:
    spoiler.keys, spoiler.policy = {_CONNECTIONS, _REQUESTS}, _BAD
    async with running(*_BASE, _API) as mesh:
        for _ in range(2):
            assert isinstance(await mesh.change(*_BASE, _API, bad(paths=["/new"])), PartlyEnforced)
            assert await mesh.get("alice", "/api/x") == 0
            assert isinstance(await mesh.change(*_BASE, _API), Enforced)
            assert await mesh.get("alice", "/api/x") == 200


@pytest.mark.parametrize("key", [_REQUESTS, _CONNECTIONS, _INBOUND, _BEHIND], ids=["rules", "who", "outer", "http"])
async def test_whatever_of_a_port_is_rejected_from_the_beginning_closes_it(spoiler: Spoiler, key: ResourceKey) -> None:
    spoiler.keys = {key}
    async with running(*_BASE, _API) as mesh:
        assert await mesh.get("alice", "/api/x") == 0
        assert await mesh.get("alice", "/api/x", RAW) == 200
        assert SERVER in {one.workload for one in mesh.events_of(NotEnforced)}
        spoiler.keys = set()
        assert isinstance(await mesh.change(*_BASE, allow("other", "alice", paths=["/api/*"])), Enforced)
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/new")) == (200, 403)


async def test_trust_that_a_proxy_rejects_closes_all_of_its_ports(spoiler: Spoiler) -> None:
    """With the old roots, a proxy would still accept a trust domain that was removed."""
    async with running(*_BASE, _API) as mesh:
        spoiler.keys = {_TRUST}
        event = await mesh.change(*_BASE)
        assert isinstance(event, PartlyEnforced)
        assert (await mesh.get("alice", "/api/x"), (await mesh.call("alice", b"x", port=RAW)).status) == (0, 0)
        assert {one.port for one in mesh.events_of(NotEnforced) if one.workload == SERVER} == {HTTP, RAW}
        spoiler.keys = set()
        assert isinstance(await mesh.change(*_BASE, _API), Enforced)
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/new")) == (200, 403)


async def test_a_proxy_that_also_rejects_the_closing_resources_loses_the_listener(
    spoiler: Spoiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closures, "closing_listener", lambda door: spoiler(listeners.closing_listener(door)))
    async with running(*_BASE, _API) as mesh:
        spoiler.keys = {_CONNECTIONS}
        assert isinstance(await mesh.change(*_BASE), PartlyEnforced)
        assert await mesh.get("alice", "/api/x") == 0
        assert (await mesh.call("alice", b"x", port=RAW)).body == b"x"


async def test_nothing_old_is_in_force_while_a_port_opens_again(spoiler: Spoiler) -> None:
    """The proxy still has the old rules when it gets the command to open. They must be removed first."""
    spoiler.policy = _BAD
    wide = allow("wide", "alice", paths=["/*"])
    secret = deny("secret", "alice", paths=["/secret"])
    async with running(*_BASE, wide) as mesh:
        assert await mesh.get("alice", "/secret") == 200
        for number in range(5):
            spoiler.keys = {_REQUESTS}
            assert isinstance(await mesh.change(*_BASE, wide, secret, bad(paths=[f"/{number}"])), PartlyEnforced)
            mended = allow("mended", "bob", paths=[f"/{number}"])
            async with hammering({"secret": lambda: mesh.get("alice", "/secret")}) as answers:
                assert isinstance(await mesh.change(*_BASE, wide, secret, mended), Enforced)
                await answers.more("secret", 5)
            assert answers.only("secret", 0, 403), answers
            spoiler.keys = set()
            await mesh.change(*_BASE, wide)


async def test_a_rejected_audit_closes_nothing_and_is_not_called_enforced(spoiler: Spoiler) -> None:
    async with running(*_BASE, _API) as mesh:
        spoiler.keys = {_AUDIT}
        event = await mesh.change(*_BASE, _API, allow("more", "alice", paths=["/more"]))
        assert isinstance(event, PartlyEnforced)
        assert (event.closed, any("audit" in one for one in event.missing)) == ((), True)
        assert (await mesh.get("alice", "/more"), await mesh.get("alice", "/new")) == (200, 403)


@pytest.mark.parametrize("why", ["large", "deep"])
async def test_what_is_too_much_for_a_proxy_is_not_sent_and_closes_its_port(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_obstacle(one: XdsResource) -> str | None:
        return f"too {why}" if one.key == _REQUESTS and _BAD in one.policies else listeners.find_obstacle(one)

    monkeypatch.setattr(closures, "find_obstacle", find_obstacle)
    async with running(*_BASE, _API) as mesh:
        event = await mesh.change(*_BASE, _API, bad(paths=["/new"]))
        assert isinstance(event, PartlyEnforced)
        assert _rejections(mesh, EXTENSION) == 0
        assert await mesh.get("alice", "/api/x") == 0
        assert [(one.port, why in one.message) for one in mesh.events_of(NotEnforced)] == [(HTTP, True)]
        assert isinstance(await mesh.change(*_BASE, _API), Enforced)
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/new")) == (200, 403)
