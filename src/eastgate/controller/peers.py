"""Reports between replicas: each reports the acknowledgements of its proxies, and the leader asks all replicas."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from eastgate.cluster import World
from eastgate.control.authorizer.http_checks import HttpListener
from eastgate.control.authorizer.http_server import ServedRequest, ServedResponse
from eastgate.control.identity import IdentityError, verify_connection
from eastgate.control.sites import TlsEndpoint
from eastgate.controller.certificates.ca_secret import ServerTls
from eastgate.controller.proxies.progress import ReplicaReport

if TYPE_CHECKING:
    import httpx2

_LOG = logging.getLogger(__name__)
_NO_REPORT = "a replica without a report"
_PATH = "/report"
_NAME_LABEL = "app.kubernetes.io/name"
_TIMEOUT_SECONDS = 3.0
_JSON = (("content-type", "application/json"),)


def peer_addresses(world: World, namespace: str, replica: str) -> list[str]:
    """Return the addresses of the other replicas: the pods of the controller with an address."""
    return sorted(
        workload.ips[0]
        for workload in world.workloads.values()
        if workload.namespace == namespace
        and workload.labels.get(_NAME_LABEL) == "eastgate"
        and workload.name != replica
        and workload.ips
        and not workload.derived
    )


class PeerServer(HttpListener):
    """Sends the report of this replica to other replicas, and to no other client. Use it with `async with`."""

    def __init__(
        self, host: str, port: int, tls: ServerTls, identity: str, report: Callable[[], ReplicaReport]
    ) -> None:
        super().__init__(self._answer)
        self._report = report
        self._endpoint = TlsEndpoint(host, port, tls.context, lambda: tls.bundles, lambda peer: peer == identity)

    async def listen(self) -> asyncio.Server:
        """Open the port, which accepts only replicas."""
        return await self._endpoint.listen(self.http.protocol)

    def _answer(self, request: ServedRequest) -> ServedResponse:
        if request.target != _PATH:
            return ServedResponse(404)
        return ServedResponse(200, _JSON, msgspec.json.encode(self._report().to_json()))


class PeerReports:
    """Gets the reports of the other replicas. A replica that does not answer has no report: its proxies are unknown."""

    def __init__(self, tls: ServerTls, identity: str, port: int) -> None:
        self._tls = tls
        self._identity = identity
        self.port = port
        self._silent: set[str] = set()  # addresses that did not answer the last request

    async def ask(self, addresses: Iterable[str]) -> list[ReplicaReport]:
        """Return the reports of the replicas that answer."""
        asked = list(addresses)
        for gone in self._silent.difference(asked):
            self._silent.discard(gone)
            _LOG.info("the replica at %s is gone", gone, extra={"address": gone, "over": _NO_REPORT})
        answers = await asyncio.gather(*(self._ask(address) for address in asked))
        return [answer for answer in answers if answer is not None]

    async def _ask(self, address: str) -> ReplicaReport | None:
        import httpx2

        host = f"[{address}]" if ":" in address else address
        try:
            context = self._tls.client_context()
            async with httpx2.AsyncClient(verify=context, timeout=_TIMEOUT_SECONDS, trust_env=False) as client:
                response = await client.get(f"https://{host}:{self.port}{_PATH}")
                self._verify(response)
                response.raise_for_status()
                report = ReplicaReport.from_json(msgspec.json.decode(response.content, type=dict[str, Any]))
        except (httpx2.HTTPError, OSError, ValueError, RecursionError, msgspec.MsgspecError, IdentityError) as error:
            self._silent.add(address)
            fields = {"address": address, "trouble": _NO_REPORT}
            _LOG.warning("the replica at %s does not report its proxies: %s", address, error, extra=fields)
            return None
        if address in self._silent:
            self._silent.discard(address)
            fields = {"address": address, "over": _NO_REPORT}
            _LOG.info("the replica at %s reports its proxies again", address, extra=fields)
        return report

    def _verify(self, response: httpx2.Response) -> None:
        """Raise PeerError if the peer is not a replica: another pod may have the address of an old replica."""
        connection = response.extensions["network_stream"].get_extra_info("ssl_object")
        verify_connection(connection, self._tls.bundles, self._identity)
