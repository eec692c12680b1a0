"""Long-lived Envoys of a small world, in a thread of their own. Only the policies change."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

from eastgate import Authority, Settings
from eastgate.authority.reading import sort_documents
from eastgate.control.access_log import Observation
from eastgate.control.events import Decided, MeshEvent, NotEnforced
from eastgate.control.identity import SvidSource
from eastgate.dialects import reads
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.inbound_port import TIMEOUTS
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.local.machine.connection import CallConnection, HttpRequest, Target
from eastgate.local.machine.http1 import Malformed
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.reading.jwt import KeySource
from eastgate.reading.manifests import read_text
from tests.attacks.application import Application
from tests.attacks.conversing import converse
from tests.differential.asking import HTTP_2, Ask, Caller, Http
from tests.differential.world import FEDERATED, SETTINGS, WORLD, Manifest
from tests.patience import PATIENCE
from tests.replacing import enforce_instead

__all__ = ["Answer", "Bench", "authority_of"]

T = TypeVar("T")
_TIMEOUT = PATIENCE
_LOG_SECONDS = 2.0  # the time limit for a line of a proxy's log
_MAX_CONCURRENT_CONNECTIONS = 64
# A proxy gives no answer to malformed HTTP/2, and closes after this time, for which thousands of tries wait.
_USUAL, _SHORT = TIMEOUTS["delayed_close_timeout"], "0.5s"
RAW = b"\x00\x01 bytes that are no HTTP \xff"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: the status (0: closed), and the lines of the proxy's log."""

    status: int
    connection: Observation | None
    request: Observation | None

    @property
    def refused_by_proxy(self) -> bool:
        """Return whether Envoy refused the request before any policy, or had no route for it."""
        return self.request is not None and self.request.decision.partition(":")[2].startswith("proxy/")

    @property
    def allowed(self) -> bool:
        if self.request is not None:
            return self.request.allowed
        return self.status != 0 and self.connection is not None and self.connection.allowed

    @property
    def who(self) -> str | None:
        """Return the rule in the proxy's log. The rule of the connection counts if requests are open."""
        rules = [one.who for one in (self.request, self.connection) if one is not None]
        return next((rule for rule in rules if rule != "open"), rules[0] if rules else None)


def authority_of(manifests: Iterable[Manifest], settings: Settings, keys: KeySource | None = None) -> Authority:
    listed = json.dumps({"kind": "List", "apiVersion": "v1", "items": list(manifests)})
    reading = read_text("generated.json", listed, positioned=reads)
    return Authority(sort_documents(reading.documents, settings, reading.reporter), settings, keys)


class Bench:
    """A running mesh, started by `with`. Call `enforce` with policies, then `ask`."""

    _running: ClassVar[int] = 0

    def __init__(
        self,
        name: str = "differential",
        world: Sequence[Manifest] = WORLD,
        *,
        settings: Settings = SETTINGS,
        source: SvidSource | None = None,
        tokens: TokenIdentity | None = None,
        keys: KeySource | None = None,
    ) -> None:
        self._options = MeshOptions(name=name, federate=FEDERATED, source=source, tokens=tokens)
        self.world = world
        self._settings = settings  # of the start: a mesh keeps its mode
        self._keys = keys  # of the issuers that policies name
        self.rejected: list[NotEnforced] = []
        self._seen: dict[str, list[Observation]] = defaultdict(list)
        self._used: set[tuple[str, int]] = set()
        self._contexts: dict[tuple[str, Sequence[str]], Any] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="eg-")
        self.application = Application(f"{self._folder.name}/app.sock")  # of every pod
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="differential", daemon=True)

    # In the thread of the caller

    def __enter__(self) -> Self:
        Bench._running += 1
        TIMEOUTS["delayed_close_timeout"] = _SHORT
        self._thread.start()
        try:
            self.run(self._start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self.mesh.__aexit__(None, None, None))
            self.run(self.application.stop())
        finally:
            self._end()

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(PATIENCE)

    def _end(self) -> None:
        Bench._running -= 1
        TIMEOUTS["delayed_close_timeout"] = _SHORT if Bench._running else _USUAL
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()
        self._folder.cleanup()

    def enforce(self, policies: Iterable[Manifest], settings: Settings = SETTINGS) -> Authority:
        """Enforce policies, and wait until every proxy enforces them."""
        self.rejected.clear()
        self._contexts.clear()  # certificates expire after an hour, and runs may be longer
        authority = authority_of([*self.world, *policies], settings, self._keys)
        self.run(enforce_instead(self.mesh, authority))
        return authority

    def located(self, ask: Ask) -> Ask:
        """Return the same request, with an IP address."""
        return ask.located({key: site.address for key, site in self.mesh.sites.items()})

    def ask(self, asks: Sequence[Ask]) -> list[Answer]:
        return self.run(self._ask_all(asks))

    # In the thread of the mesh

    def forget(self, connection: CallConnection) -> None:
        """Delete the log lines of earlier connections from the same address and port."""
        self._seen.pop("{}:{}".format(*connection.local_address), None)

    async def logged(self, connection: CallConnection, number: int) -> list[Observation]:
        """Wait for `number` log lines about requests on a connection, and return them."""
        source = "{}:{}".format(*connection.local_address)
        ends = time.monotonic() + PATIENCE
        while True:
            seen = [each for each in self._seen.get(source, []) if each.level == "request"]
            if len(seen) >= number or time.monotonic() > ends:
                return seen
            await asyncio.sleep(0.01)

    async def _start(self) -> None:
        def read(_: Settings) -> Authority:
            return authority_of(self.world, self._settings)

        await self.application.start()
        pods = [one["metadata"] for one in self.world if one["kind"] == "Pod"]
        apps = {f"{pod['namespace']}/{pod['name']}": SocketAddress(self.application.path) for pod in pods}
        self.mesh = LocalMesh(read, self._settings, replace(self._options, apps=apps), on_event=self._heard)
        await self.mesh.__aenter__()

    def _heard(self, event: MeshEvent) -> None:
        if isinstance(event, Decided) and event.observation.source is not None:
            self._seen[event.observation.source].append(event.observation)
        elif isinstance(event, NotEnforced):
            self.rejected.append(event)

    async def _ask_all(self, asks: Sequence[Ask]) -> list[Answer]:
        """Send requests. Those of one caller to one port share a connection; each HTTP/2 request has its own."""
        self._seen.clear()
        self._used.clear()
        self.application.arrived.clear()
        groups: dict[tuple[Caller, str, int, int], list[int]] = defaultdict(list)
        for place, ask in enumerate(asks):
            shares = ask.is_plain and ask.http is not None and ask.http.version != HTTP_2
            groups[ask.caller, ask.pod, ask.port, 0 if shares else place + 1].append(place)
        slots = asyncio.Semaphore(_MAX_CONCURRENT_CONNECTIONS)
        made: list[tuple[list[int], str | None, list[int]]] = []  # places, source address, statuses

        async def group(places: list[int]) -> None:
            async with slots:
                while places:
                    source, statuses = await self._connection([asks[place] for place in places])
                    made.append((places[: len(statuses)], source, statuses))
                    places = places[len(statuses) :]

        await asyncio.gather(*(group(places) for places in groups.values()))
        found: dict[int, Answer] = {}
        answers = await asyncio.gather(*(self._answers(asks[one[0]], source, heard) for one, source, heard in made))
        for (places, _, _), some in zip(made, answers, strict=True):
            found.update(zip(places, some, strict=True))
        return [found[place] for place in range(len(asks))]

    async def _connection(self, asks: Sequence[Ask]) -> tuple[str | None, list[int]]:
        """Return the statuses of the first requests, at least one. A proxy that closes leaves the others unanswered."""
        first = asks[0]
        tls = await self.context(first.caller)
        try:
            connection = await self._fresh(first, tls)
        except OSError:
            return None, [0]  # the handshake failed
        source = "{}:{}".format(*connection.local_address)
        async with connection:
            if first.http is None:
                await connection.send(RAW)
                statuses = [(await connection.raw(_TIMEOUT, len(RAW))).status]
            elif first.http.version == HTTP_2:
                statuses = [await converse(connection, first.http, _TIMEOUT)]
            else:
                statuses = await self._requests(connection, [ask.http for ask in asks if ask.http is not None])
        return source, statuses

    async def _fresh(self, ask: Ask, tls: Any) -> CallConnection:
        """Open a connection from a new port, which distinguishes its log lines."""
        while True:
            connection = await CallConnection.open(
                self.target(ask), tls=tls, source_address=ask.caller.address, timeout=_TIMEOUT
            )
            if connection.local_address not in self._used:
                self._used.add(connection.local_address)
                return connection
            await connection.close()

    async def _requests(self, connection: CallConnection, requests: Sequence[Http]) -> list[int]:
        """Send requests one after the other: Envoy closes if more than two of its answers wait."""
        statuses: list[int] = []
        try:
            for request in requests:
                connection.prepare(HttpRequest(request.method))  # the answer to HEAD has no body
                await connection.send(request.to_bytes())
                answer = await connection.response(_TIMEOUT)
                statuses.append(answer.status)
                if answer.header("connection") == "close":
                    break
        except (OSError, EOFError, Malformed):
            pass
        return statuses or [0]

    async def _answers(self, ask: Ask, source: str | None, statuses: list[int]) -> list[Answer]:
        """Return the answers with log lines. A request has one if the port reads HTTP and the connection is allowed."""
        if source is None:
            return [Answer(0, None, None)]
        reads_http = self.mesh.enforcement.plans.of_sidecar(ask.pod, ask.port).reads_http and ask.is_plain
        wanted = len(statuses) if reads_http else 0
        until = time.monotonic() + _LOG_SECONDS
        while True:
            seen = self._seen.get(source, [])
            requests = [one for one in seen if one.level == "request"]
            denial = next((one for one in seen if one.level != "request" and not one.allowed), None)
            connection = denial or next((one for one in seen if one.level != "request"), None)
            if denial or (connection and len(requests) >= wanted and (wanted or statuses != [0])):
                break
            if time.monotonic() > until:  # closed without a log line
                break
            await asyncio.sleep(0.01)
        padded: list[Observation | None] = [*requests, *(None for _ in statuses)]
        return [Answer(status, connection, padded[place]) for place, status in enumerate(statuses)]

    def target(self, ask: Ask) -> Target:
        site = self.mesh.sites[ask.pod]
        return Target(site.address, site.ports[ask.port], through=self.mesh.tunnel_to(site))

    async def context(self, caller: Caller, alpn: Sequence[str] = ()) -> Any:
        """Return the TLS context of a caller, or None for plaintext."""
        if caller.identity is None:
            return None
        key = (caller.identity, tuple(alpn))
        if key not in self._contexts:
            self._contexts[key] = context = await self.mesh.certificates.context(caller.identity)
            if alpn:
                context.set_alpn_protocols(list(alpn))
        return self._contexts[key]
