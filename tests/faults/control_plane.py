"""A control plane for one proxy, as a process of its own: `control_plane.py`, with commands on stdin.

The first line names the proxy. Every other line has manifests to enforce instead. The answer to each line is the number
of responses that were sent until the proxy has all resources.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from eastgate.control.enforcement import Enforcement
from eastgate.control.fleet import SiteChange, everything
from eastgate.control.identity import Svid, TrustBundles, roots_of_pem
from eastgate.control.sites import ProxySite
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.server import AdsServer, Store, Tokens
from eastgate.settings import Settings
from tests.faults.worlds import DOMAIN, reading


class OneToken(Tokens):
    """A token store with one fixed token, so that the proxy can reconnect after a restart."""

    def __init__(self, node: str, token: str) -> None:
        super().__init__()
        self._one = (node, token)

    def issued(self, token: str) -> bool:
        return token == self._one[1]

    def accepts(self, node: str, token: str) -> bool:
        return (node, token) == self._one


async def main(lines: asyncio.StreamReader) -> None:
    config: dict[str, Any] = json.loads(await lines.readline())
    node = config["node"]
    ports = {int(port): bound for port, bound in config["ports"].items()}
    site = ProxySite(node, config["address"], ports, {port: SocketAddress(config["app"]) for port in ports})
    store = Store()
    authority = reading(*config["manifests"])(Settings())
    enforcement = Enforcement(authority, store)
    bundles = TrustBundles.of(DOMAIN, roots_of_pem(config["roots"]))
    now = datetime.now(UTC)
    enforcement.follow(SiteChange({node: site}), everything(authority.world))
    enforcement.put_svid(node, Svid(config["identity"], config["chain"], config["key"], now, now, now))
    enforcement.put_trust(node, bundles)
    server = AdsServer(store, OneToken(node, config["token"]))
    await server.start(f"unix:{config['socket']}")
    print(json.dumps({"listens": True}), flush=True)
    while True:
        await server.wait_settled(node, 30)
        sent = server.metrics.registry.get_sample_value
        types = ("Cluster", "ClusterLoadAssignment", "Secret", "Listener", "RouteConfiguration", "TypedExtensionConfig")
        found = {one: sent("eastgate_xds_responses_total", {"type": one}) or 0 for one in types}
        print(json.dumps({one: number for one, number in found.items() if number}), flush=True)
        line = await lines.readline()
        if not line:
            return
        authority = reading(*json.loads(line))(Settings())
        enforcement.decide_by(authority)
        enforcement.follow(SiteChange(), everything(authority.world))


async def connected() -> None:
    lines = asyncio.StreamReader(limit=1024 * 1024)
    protocol = asyncio.StreamReaderProtocol(lines)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    await main(lines)


if __name__ == "__main__":
    asyncio.run(connected())
