"""The toy store behind a real gateway, a sidecar and an application. Its staff have tokens of a running issuer."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from eastgate import load
from eastgate.authority.authority import Authority
from eastgate.control.access_log import Observation
from eastgate.control.events import Decided, Enforced, MeshEvent, PartlyEnforced
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.local.machine.connection import Called, HttpRequest, Target
from eastgate.local.machine.echo import EchoServer
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.reading.jwt import DiscoveredKeys
from eastgate.settings import Settings
from tests.local.machine.calling import call
from tests.local.running import runtime_folder
from tests.programs.oidc_issuer import OidcIssuer
from tests.replacing import enforce_instead

TOYSTORE = Path(__file__).parents[2] / "examples" / "toystore" / "manifests"
ISSUER = "https://staff.toystore.example/realms/toystore"
STAFF = {"sub": "erin", "aud": "toystore-admin", "group": "allowed-users"}
GATEWAY = "gateway:gateways/edge"
POD = "toystore/toystore"
APPLICATION = """\
apiVersion: v1
kind: Service
metadata: {name: toystore, namespace: toystore}
spec: {selector: {app: toystore}, ports: [{port: 80, targetPort: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: toystore, namespace: toystore, labels: {app: toystore}}
spec: {serviceAccountName: toystore, containers: [{name: c, image: i, ports: [{containerPort: 8000}]}]}
"""


def write_manifests(folder: Path, issuer: str | None = None) -> None:
    """Write the example into a folder, with an application, and with another issuer if one is given."""
    shutil.copytree(TOYSTORE, folder)
    (folder / "application.yaml").write_text(APPLICATION)
    for path in folder.iterdir():
        path.write_text(path.read_text().replace(ISSUER, issuer or ISSUER))


class Clock:
    """The clock of the keys."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class ToyStore:
    """The running store."""

    def __init__(self, folder: Path, application: EchoServer) -> None:
        self.folder = folder
        self.application = application
        self.clock = Clock()
        self.events: list[MeshEvent] = []
        self._keys = DiscoveredKeys(fresh_for=100, usable_for=300, min_interval=10, clock=self.clock)
        options = MeshOptions(name=f"toys-{os.getpid()}", apps={POD: SocketAddress(application.path)})
        self.mesh = LocalMesh(self.read, None, options)
        self.mesh.listen(self.events.append)

    def read(self, settings: Settings) -> Authority:
        """Read the manifests as they are now."""
        return load(self.folder, settings=settings, keys=self._keys, live=True, strict=False)

    async def apply(self) -> Enforced | PartlyEnforced:
        """Enforce the manifests as they are now."""
        return await enforce_instead(self.mesh, self.read(self.mesh.settings))

    async def edit(self, file: str, change: Callable[[str], str]) -> Enforced | PartlyEnforced:
        """Change a file, and enforce it."""
        path = self.folder / file
        path.write_text(change(path.read_text() if path.exists() else ""))
        return await self.apply()

    def target(self, host: str, port: int = 443) -> Target:
        """Return the address to connect to for a host."""
        site = self.mesh.gateways[GATEWAY]
        return Target(site.address, site.ports[port], host)

    async def send(
        self,
        path: str,
        authorization: str | None = None,
        *,
        host: str = "admin",
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> Called:
        """Make a request at the gateway."""
        name = f"{host}.toystore.com"
        given = [("host", name), *(headers or {}).items()]
        if authorization is not None:
            given.append(("authorization", authorization))
        return await call(
            self.target(name), tls=tls or client_context(), request=HttpRequest(method, path, tuple(given)), timeout=30
        )

    async def staff(self, token: str) -> int:
        """Return the status of a request with a token at the page of the staff."""
        return (await self.send("/admin", f"Bearer {token}")).status

    async def partner(self, key: str, method: str = "GET") -> int:
        """Return the status of a request with an API key."""
        return (await self.send("/v1/toys", f"APIKEY {key}", host="api", method=method)).status

    async def logged(self, at: str = GATEWAY) -> list[Observation]:
        """Return the decisions of a proxy that were not returned before, once there are any."""
        while True:
            decided = [event.observation for event in self.events if isinstance(event, Decided)]
            if observations := [each for each in decided if each.workload == at and each.level == "request"]:
                self.events.clear()
                return observations
            await asyncio.sleep(0.01)


def client_context() -> ssl.SSLContext:
    """Return the TLS settings of a public client: it shows no certificate, and trusts every gateway."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def received(called: Called) -> dict[str, Any]:
    """Return the request that the application received."""
    arrived: dict[str, Any] = json.loads(called.body)
    return arrived


@asynccontextmanager
async def toy_store(folder: Path, issuer: OidcIssuer | None = None) -> AsyncIterator[ToyStore]:
    """Run the store from manifests in a folder, which is made if there is none."""
    if not folder.exists():
        write_manifests(folder, issuer.url if issuer is not None else None)
    with runtime_folder() as sockets:
        application = EchoServer(f"{sockets}/toystore.sock", POD, 8000)
        await application.start()
        try:
            store = ToyStore(folder, application)
            async with store.mesh:
                yield store
        finally:
            await application.stop()
