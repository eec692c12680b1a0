"""An Envoy authenticates to the control plane with the current token in the file."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from eastgate.control.identity import EmbeddedCa
from eastgate.envoy.config.bootstrap import ControlPlane, ProxyFiles, pod_bootstrap, secret_sources
from eastgate.envoy.server import AdsServer, Store, Tokens
from eastgate.local.machine.envoy import find_envoy
from tests.controller.injection.volumes import write_volume
from tests.patience import PATIENCE

pytestmark = pytest.mark.real

_NODE = "shop/cart-0"
_SERVER = "spiffe://cluster.local/ns/eastgate-system/sa/eastgate"


class Plane:
    """A control plane over TLS, always on the same port."""

    def __init__(self) -> None:
        self.ca = EmbeddedCa("cluster.local")
        self.tokens = Tokens()
        self.port = 0
        self.server: AdsServer | None = None

    async def start(self, ca: EmbeddedCa | None = None, name: str = "localhost") -> None:
        svid = (ca or self.ca).issue(_SERVER, [name])
        credentials = grpc.ssl_server_credentials([(svid.private_key.encode(), svid.chain.encode())])
        store = Store()
        store.put(_NODE, [])
        self.server = AdsServer(store, self.tokens)
        self.port = await self.server.start(f"127.0.0.1:{self.port}", credentials)

    async def stop(self) -> None:
        if self.server is not None:
            await self.server.stop(0)

    async def connected(self) -> None:
        assert self.server is not None
        await self.server.wait_settled(_NODE, PATIENCE)

    async def refuses(self) -> None:
        """Wait until it has refused a client without a valid token."""
        assert self.server is not None
        registry = self.server.metrics.registry
        while not registry.get_sample_value("eastgate_xds_refused_streams_total", {"reason": "unauthenticated"}):
            await asyncio.sleep(0.05)


def pem(ca: EmbeddedCa) -> str:
    return ca.bundles.pem(ca.bundles.own)


@contextmanager
def envoy(folder: Path, port: int, name: str = "localhost") -> Iterator[subprocess.Popen[bytes]]:
    files = ProxyFiles(f"{folder}/token/token", f"{folder}/ca/ca.crt", f"{folder}/sources", None)
    write_volume(folder / "sources", {name: json.dumps(made) for name, made in secret_sources(files).items()})
    plain = pod_bootstrap(ControlPlane("127.0.0.1", port, name), files, node=_NODE)
    command = ["setpriv", "--pdeathsig", "KILL", "--", str(find_envoy()), "--disable-hot-restart", "--concurrency", "1"]
    command += ["--log-level", "warning", "--config-yaml", json.dumps(plain)]
    with (folder / "envoy.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def run(test: object) -> None:
    asyncio.run(asyncio.wait_for(test, 3 * PATIENCE))  # type: ignore[arg-type]


def test_a_stream_has_the_token_that_is_in_the_file_now(tmp_path: Path) -> None:
    async def test() -> None:
        plane = Plane()
        await plane.start()
        write_volume(tmp_path / "token", {"token": plane.tokens.issue(_NODE)})
        write_volume(tmp_path / "ca", {"ca.crt": pem(plane.ca)})
        with envoy(tmp_path, plane.port):
            await plane.connected()
            rotated = plane.tokens.issue(_NODE)  # the old token is invalid from now on
            await plane.stop()
            await plane.start()
            await plane.refuses()
            write_volume(tmp_path / "token", {"token": rotated})
            await plane.connected()
        await plane.stop()

    run(test())


def test_a_new_ca_is_trusted_once_it_is_in_the_file_and_the_old_one_no_longer(tmp_path: Path) -> None:
    async def test() -> None:
        plane, other = Plane(), EmbeddedCa("cluster.local")
        await plane.start(other)
        write_volume(tmp_path / "token", {"token": plane.tokens.issue(_NODE)})
        write_volume(tmp_path / "ca", {"ca.crt": pem(plane.ca)})
        with envoy(tmp_path, plane.port):
            while "CERTIFICATE_VERIFY_FAILED" not in (tmp_path / "envoy.log").read_text():
                await asyncio.sleep(0.05)
            assert plane.server is not None
            assert not plane.server.proxies()
            write_volume(tmp_path / "ca", {"ca.crt": pem(other)})
            await plane.connected()
        await plane.stop()

    run(test())


def test_a_control_plane_of_another_name_is_none(tmp_path: Path) -> None:
    async def test() -> None:
        plane = Plane()
        await plane.start(name="elsewhere")
        write_volume(tmp_path / "token", {"token": plane.tokens.issue(_NODE)})
        write_volume(tmp_path / "ca", {"ca.crt": pem(plane.ca)})
        with envoy(tmp_path, plane.port):
            while "CERTIFICATE_VERIFY_FAILED" not in (tmp_path / "envoy.log").read_text():
                await asyncio.sleep(0.05)
            assert plane.server is not None
            assert not plane.server.proxies()
        await plane.stop()

    run(test())
