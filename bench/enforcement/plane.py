"""A control plane for the benchmark, in this process: the one of `eastgate up`, without its reading of logs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from bench.enforcement.envoys import Envoy
from bench.enforcement.origin import ClientSocket, origin
from bench.enforcement.rules import SERVER
from bench.plans import TRUST_DOMAIN
from eastgate.control.identity import EmbeddedCa, Svid, TrustBundles
from eastgate.control.sites import ProxySite
from eastgate.envoy.config.bootstrap import bootstrap
from eastgate.envoy.config.client_certificates import svid_secret, trust_secret
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.server.resources import XdsResource
from eastgate.envoy.server.server import AdsServer
from eastgate.envoy.server.store import Store
from eastgate.envoy.server.tokens import Tokens
from eastgate.local.machine.addresses import Addresses
from eastgate.local.proxies import wait_until_listening

__all__ = ["PORT", "Plane"]

PORT = 8080
_TIMEOUT_SECONDS = 120.0


class Plane:
    """A control plane with its proxies and the origin. All of them end with the `async with` block."""

    def __init__(self) -> None:
        self.store = Store()
        self.tokens = Tokens()
        self.server = AdsServer(self.store, self.tokens)
        self.envoys: dict[str, Envoy] = {}
        self._authority = EmbeddedCa(TRUST_DOMAIN)
        self._svids: dict[str, Svid] = {}
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Plane:
        self.folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="eg-")))
        self.app = self.folder / "app"
        self._addresses = self._stack.enter_context(Addresses())
        await self.server.start(f"unix:{self.folder}/ads")
        self._stack.push_async_callback(self.server.stop, 0.1)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def svid(self, identity: str) -> Svid:
        """Return the SVID of an identity."""
        if identity not in self._svids:
            self._svids[identity] = self._authority.issue(identity)
        return self._svids[identity]

    @property
    def bundles(self) -> TrustBundles:
        """Return the trust bundles of every proxy."""
        return self._authority.bundles

    def secrets(self) -> list[XdsResource]:
        """Return the secrets of a server: its SVID and the trust bundle."""
        svid, bundles = self.svid(SERVER), self.bundles
        return [
            svid_secret(svid.chain.encode(), svid.private_key.encode()),
            trust_secret({TRUST_DOMAIN: bundles.pem(TRUST_DOMAIN).encode()}),
        ]

    def addresses(self, nodes: Iterable[str]) -> Mapping[str, str]:
        """Return a loopback address for each node."""
        return self._addresses.assign(nodes)

    def sites(self, nodes: Iterable[str]) -> dict[str, ProxySite]:
        """Return sites of proxies with one port, all before the same application."""
        assigned = self.addresses(nodes)
        return {
            node: ProxySite(node, at, {PORT: PORT}, {PORT: SocketAddress(str(self.app))})
            for node, at in assigned.items()
        }

    async def start(self, nodes: Iterable[str], cores: frozenset[int] | None = None) -> None:
        """Start the proxies of these nodes, and wait until they have their resources."""
        names = list(nodes)
        for node in names:
            config = bootstrap(node, f"{self.folder}/ads", self.tokens.issue(node))
            self._run(node, config, cores)
        await self.settled(names)

    def start_origin(self, clients: Iterable[ClientSocket], cores: frozenset[int] | None = None) -> None:
        """Start the origin."""
        self._run("origin", origin(clients, self.app), cores)

    def _run(self, node: str, config: object, cores: frozenset[int] | None) -> None:
        assert isinstance(config, dict)
        log = self.folder / f"{len(self.envoys)}.log"
        envoy = Envoy(config, node, log, cores) if cores is not None else Envoy(config, node, log)
        self.envoys[node] = self._stack.enter_context(envoy)

    async def settled(self, nodes: Iterable[str]) -> None:
        """Wait until these proxies have acknowledged all their resources. Fails if one rejects a resource."""
        names = list(nodes)
        await asyncio.gather(*(self.server.wait_settled(node, _TIMEOUT_SECONDS) for node in names))
        for node in names:
            status = self.server.status(node)
            assert status is not None
            assert not status.rejected, f"{node} has rejected {status.rejected}"

    async def listening(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Wait until these ports accept connections."""
        await wait_until_listening(set(wanted), _TIMEOUT_SECONDS)
