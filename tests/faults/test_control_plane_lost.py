"""Without a control plane, proxies keep their resources. A new control plane continues from there."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastgate.control.enforcement import Enforcement
from eastgate.control.fleet import SiteChange, everything
from eastgate.control.identity import EmbeddedCa, client_context
from eastgate.control.sites import ProxySite
from eastgate.envoy.config.bootstrap import bootstrap
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.server.events import Acked, Connected, ServerEvent
from eastgate.envoy.server.resources import EXTENSION
from eastgate.envoy.server.store import Store
from eastgate.local.machine.addresses import Addresses
from eastgate.local.machine.connection import HttpRequest, Target
from eastgate.local.machine.echo import EchoServer
from eastgate.local.machine.envoy import EnvoyProcess
from eastgate.local.proxies import wait_until_listening
from eastgate.settings import Settings
from tests.faults.hammering import hammering
from tests.faults.meshes import SERVER, running
from tests.faults.worlds import DOMAIN, HTTP, Manifest, allow, reading, sa, world
from tests.local.machine.calling import call

_BASE = [*world(), allow("all", "alice", "carol")]
_API = allow("api", "alice", "carol", paths=["/api/*"])
_RECONNECT_SECONDS = 40.0  # Envoy's backoff grows up to half a minute


async def test_a_control_plane_that_goes_and_comes_back_is_not_noticed_by_traffic() -> None:
    async with running(*_BASE, _API) as mesh:
        address = f"unix:{mesh.mesh.rundir.socket('control-plane')}"
        calls = {
            "allowed": lambda: mesh.get("alice", "/api/x"),
            "forbidden": lambda: mesh.get("alice", "/secret"),
            "kept out": lambda: mesh.get("bob", "/api/x"),
        }
        async with hammering(calls) as answers:
            await answers.more("kept out")
            await mesh.mesh.server.stop(0)
            await answers.more("kept out")
            back, sent = asyncio.Event(), mesh.sent()

            def on_event(event: ServerEvent) -> None:
                if isinstance(event, Connected):
                    back.set()

            mesh.mesh.server.listen(on_event)
            await mesh.mesh.server.start(address)
            await asyncio.wait_for(back.wait(), _RECONNECT_SECONDS)
            await mesh.mesh.server.wait_settled(SERVER)
            await answers.more("kept out")
            assert mesh.sent() == sent, "it has everything already"
        assert answers.only("allowed", 200)
        assert answers.only("forbidden", 403)
        assert answers.only("kept out", 0)
        await mesh.change(*_BASE, allow("api", "alice", paths=["/secret"]))
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/secret")) == (403, 200)


async def test_a_change_that_was_made_while_it_was_away_is_enforced_when_it_is_back() -> None:
    async with running(*_BASE, _API) as mesh:
        address = f"unix:{mesh.mesh.rundir.socket('control-plane')}"
        await mesh.mesh.server.stop(0)
        changed = reading(*_BASE, allow("api", "alice", paths=["/secret"]))(mesh.mesh.settings)
        mesh.mesh.enforcement.decide_by(changed)
        mesh.mesh.enforcement.follow(SiteChange(), everything(changed.world))
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/secret")) == (200, 403)
        accepted = asyncio.Event()

        def on_event(event: ServerEvent) -> None:
            if isinstance(event, Acked) and event.type_url == EXTENSION:
                accepted.set()

        mesh.mesh.server.listen(on_event)
        await mesh.mesh.server.start(address)
        await asyncio.wait_for(accepted.wait(), _RECONNECT_SECONDS)
        assert (await mesh.get("alice", "/api/x"), await mesh.get("alice", "/secret")) == (403, 200)


# A control plane whose process is killed


@dataclass
class ControlPlane:
    """A running control plane. `receive` returns its next line."""

    process: asyncio.subprocess.Process

    async def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(await asyncio.wait_for(self.process.stdout.readline(), _RECONNECT_SECONDS))
        return found

    async def enforce(self, *manifests: Manifest) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(manifests).encode() + b"\n")
        await self.receive()


@asynccontextmanager
async def control_plane(config: dict[str, Any]) -> AsyncIterator[ControlPlane]:
    program = str(Path(__file__).with_name("control_plane.py"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(config).encode() + b"\n")
        running = ControlPlane(process)
        assert await running.receive() == {"listens": True}
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_control_plane_that_is_killed_and_started_again_is_not_noticed_by_traffic(runtime: Path) -> None:
    authority = EmbeddedCa(DOMAIN)
    svid = authority.issue(sa("server"))
    tls = {who: client_context(authority.issue(sa(who)), authority.bundles) for who in ("alice", "bob")}
    socket, token = str(runtime / "ads.sock"), secrets.token_hex()
    app = EchoServer(str(runtime / "app.sock"), SERVER, HTTP)
    with Addresses() as addresses:
        address = addresses.assign([SERVER])[SERVER]
        config = {
            "node": SERVER,
            "address": address,
            "ports": {HTTP: HTTP},
            "app": app.path,
            "socket": socket,
            "token": token,
            "identity": svid.identity,
            "chain": svid.chain,
            "key": svid.private_key,
            "roots": authority.bundles.pem(DOMAIN),
            "manifests": [*_BASE, _API],
        }

        async def get(who: str, path: str) -> int:
            return (await call(Target(address, HTTP), tls=tls[who], request=HttpRequest(path=path))).status

        calls = {
            "allowed": lambda: get("alice", "/api/x"),
            "forbidden": lambda: get("alice", "/secret"),
            "kept out": lambda: get("bob", "/api/x"),
        }
        await app.start()
        envoy = await EnvoyProcess.start(
            bootstrap(SERVER, socket, token), SERVER, on_record=lambda _: None, on_log=lambda _: None
        )
        try:
            assert await get("alice", "/api/x") == 0  # the proxy has no resources
            async with control_plane(config) as first:
                assert len(await first.receive()) == 6  # resources of every type
                await wait_until_listening([(address, HTTP)], 5)
                async with hammering(calls) as answers:
                    await answers.more("kept out")
                    os.kill(first.process.pid, signal.SIGKILL)
                    await first.process.wait()
                    await answers.more("kept out")
                    async with control_plane(config) as second:
                        assert await second.receive() == {}, "it has everything already"
                        await answers.more("kept out")
                        assert answers.only("allowed", 200)
                        assert answers.only("forbidden", 403)
                        assert answers.only("kept out", 0)
                        await second.enforce(*_BASE, allow("api", "alice", paths=["/secret"]))
                        assert (await get("alice", "/api/x"), await get("alice", "/secret")) == (403, 200)
        finally:
            await envoy.stop()
            await app.stop()


_VERSIONS = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.faults.test_control_plane_lost import print_versions
print_versions()
"""


def print_versions() -> None:
    site = ProxySite(SERVER, "127.0.0.1", {HTTP: HTTP}, {HTTP: SocketAddress("/app")})
    authority = reading(*_BASE, _API)(Settings())
    enforcement = Enforcement(authority, Store())
    enforcement.follow(SiteChange({SERVER: site}), everything(authority.world))
    print(sorted((one.key, one.version) for one in enforcement.store.resources(SERVER)))


async def test_a_control_plane_that_is_started_again_would_send_the_same_bytes() -> None:
    """Other bytes would replace the listeners of every proxy at a restart, and close every connection."""

    async def versions() -> bytes:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", _VERSIONS, stdout=asyncio.subprocess.PIPE)
        return (await process.communicate())[0]

    first, second = await asyncio.gather(versions(), versions())
    assert first
    assert first == second
