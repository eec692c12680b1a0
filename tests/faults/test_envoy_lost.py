"""A proxy that dies, or that has no resources yet, denies every request."""

from __future__ import annotations

import asyncio

import pytest

from eastgate.control.events import Noted
from eastgate.envoy.config.bootstrap import bootstrap
from eastgate.envoy.server.resources import EXTENSION
from eastgate.local.machine.envoy import EnvoyProcess
from eastgate.local.proxies import wait_until_listening
from tests.faults.hammering import hammering
from tests.faults.meshes import SERVER, Running, running, until
from tests.faults.worlds import HTTP, RAW, allow, world

_BASE = [*world(HTTP, RAW), allow("all", "alice")]
_API = allow("api", "alice", paths=["/api/*"], ports=[HTTP])


async def test_no_call_gets_through_that_policy_denies_while_a_proxy_is_killed_and_started_again() -> None:
    async with running(*_BASE, _API) as mesh:
        calls = {
            "allowed": lambda: mesh.get("alice", "/api/x"),
            "forbidden": lambda: mesh.get("alice", "/secret"),
            "kept out": lambda: mesh.get("bob", "/api/x"),
            "nobody": lambda: mesh.get(None, "/api/x"),
        }
        async with hammering(calls) as answers:
            for _ in range(3):
                await answers.more("nobody", 10)
                await _killed_and_back(mesh)
                await answers.more("allowed", 10)
                await answers.more("nobody", 10)
        assert answers.only("allowed", 200, 0)
        assert answers.only("forbidden", 403, 0)
        assert answers.only("kept out", 0)
        assert answers.only("nobody", 0)
        assert answers.of["allowed"][0] > 0, "nothing was ever down"
        assert len([one for one in mesh.events_of(Noted) if one.trouble]) == 3
        assert mesh.metric("eastgate_proxy_restarts_total") == 3


async def _killed_and_back(mesh: Running) -> None:
    process = mesh.mesh.proxies.process(SERVER)
    assert process is not None
    process.kill()
    await process.wait()
    await until(lambda: mesh.mesh.proxies.process(SERVER) is not process)
    site = mesh.mesh.sites[SERVER]
    await wait_until_listening([(site.address, port) for port in site.ports.values()], 10)


async def test_a_proxy_that_finds_no_control_plane_opens_no_port() -> None:
    async with running(*_BASE, _API) as mesh:
        await mesh.mesh.server.stop(0)
        process = mesh.mesh.proxies.process(SERVER)
        assert process is not None
        process.kill()
        await process.wait()
        await until(lambda: mesh.mesh.proxies.process(SERVER) is not process)
        async with hammering({"alice": lambda: mesh.get("alice", "/api/x")}) as answers:
            await asyncio.sleep(1)  # wait, to see that nothing happens
        assert answers.only("alice", 0)
        assert (await mesh.call("alice")).error == "refused"
        await mesh.mesh.server.start(f"unix:{mesh.mesh.rundir.socket('control-plane')}")
        await mesh.mesh.server.wait_settled(SERVER, 20)
        await wait_until_listening([(mesh.target().address, mesh.target().port)], 5)
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/secret")) == (200, 403)


@pytest.mark.parametrize("layer", ["attributes", "requests", "connections", "audit"])
async def test_a_missing_layer_denies_every_request(layer: str) -> None:
    """Check a layer that is removed, and a layer that a new proxy never gets."""
    async with running(*_BASE, _API) as mesh:
        assert await mesh.get("alice", "/api/x") == 200
        mesh.mesh.store.update(SERVER, remove=[(EXTENSION, f"{HTTP}/{layer}")])
        await mesh.mesh.server.wait_settled(SERVER)
        assert await mesh.get("alice", "/api/x") in (500, 0)
        await mesh.mesh.proxies.run((), ())
        control_plane, token = mesh.mesh.rundir.socket("control-plane"), mesh.mesh.tokens.issue(SERVER)
        envoy = await EnvoyProcess.start(
            bootstrap(SERVER, control_plane, token), SERVER, on_record=lambda _: None, on_log=lambda _: None
        )
        try:
            async with hammering({"alice": lambda: mesh.get("alice", "/api/x")}) as answers:
                await mesh.mesh.server.wait_settled(SERVER)
                await answers.more("alice", 20)
            assert answers.only("alice", 500, 0)
        finally:
            await envoy.stop()
