"""Makes one real call to a proxy, and finds the proxy's log line about it."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType

from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question, QuestionError
from eastgate.basics.records import dataclass
from eastgate.control.access_log import Observation
from eastgate.control.events import Decided, MeshEvent
from eastgate.envoy.plan.gateway import NO_SESSION, NO_SUCH_SESSION, UNREAD_MESSAGE, GatewayDestination
from eastgate.local.machine.connection import CallConnection, Called, HttpRequest, Target, problem
from eastgate.local.machine.http1 import Malformed
from eastgate.local.mesh import LocalMesh
from eastgate.reading.mcp.client import RpcError
from eastgate.reading.strict_json import Json

# The results of calls: the response, the proxy's log line, and the engine's decision.


_BY_PROXY = "proxy/"
_PROTOCOL_REFUSALS = (UNREAD_MESSAGE, NO_SESSION, NO_SUCH_SESSION)
_ANSWERED = ("via_upstream", "direct_response")  # prefixes of the details if the application answered


@dataclass(frozen=True, slots=True)
class McpResult:
    """The result of an MCP request: a result, an error, or a `problem` with an answer that is neither."""

    method: str
    version: str | None
    result: Mapping[str, Json] | None = None
    error: RpcError | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """The answer of `check` to the question of a call: a decision, or the reason why there is none.

    `causes` are the reasons why the mesh decides otherwise.
    """

    question: Question
    answer: Decision | QuestionError
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call: the response, the proxy's log line, and the engine's decision.

    A gateway sends it to a `destination`. An MCP request has a result, and takes several `steps`. This is the step that
    counts: the first denied one, or the request itself. `check` is the answer of that command.
    """

    question: Question
    at: str
    called: Called
    observation: Observation | None
    decision: Decision
    destination: GatewayDestination | None = None
    mcp: McpResult | None = None
    steps: tuple[CallResult, ...] = ()
    check: CheckedCall | None = None

    @property
    def allowed(self) -> bool:
        """Return whether the proxy allowed it. Without a log line, only status 200 counts as allowed."""
        return self.observation.allowed if self.observation is not None else self.called.status == 200

    @property
    def answered(self) -> bool:
        """Return whether the application answered, and not the proxy."""
        observation = self.observation
        by_proxy = (
            observation is not None
            and observation.allowed
            and not (observation.detail or "via_upstream").startswith(_ANSWERED)
        )
        return self.called.status != 0 and not by_proxy

    @property
    def agrees(self) -> bool:
        """Return whether proxy and engine give the same verdict, if both know all inputs, in every step."""
        return (self.allowed == self.decision.allowed or self.is_beyond_engine) and all(
            step.agrees for step in self.steps
        )

    @property
    def is_as_checked(self) -> bool:
        """Return whether `check` gives the verdict of the proxy, if both are known."""
        if self.check is None or (self.observation is None and self.called.status == 0):
            return True
        return isinstance(self.check.answer, Decision) and self.check.answer.allowed == self.allowed

    @property
    def is_beyond_engine(self) -> bool:
        """Return whether the engine does not know the reason of the verdict.

        The reason may be the answer of an authorizer, a closed route, or an invalid MCP message.
        """
        observation = self.observation
        if observation is None or self.destination is None:
            return False
        if not observation.allowed and (observation.who.startswith(_BY_PROXY) or observation.who in _PROTOCOL_REFUSALS):
            return True
        return observation.asked and any(layer.asks for layer in self.decision.layers)


_LOG_TIMEOUT_SECONDS = 15.0  # for a proxy to write its line; long, for a busy machine


@dataclass(frozen=True, slots=True)
class Client:
    """The identity of a call, if any, and its source address."""

    identity: str | None
    address: str


async def make_call(
    mesh: LocalMesh,
    client: Client,
    target: Target,
    request: HttpRequest | bytes,
    timeout: float,
    tls: ssl.SSLContext | None = None,
) -> tuple[Called, Observation | None]:
    """Send a request on a connection of its own, with `tls` or that of the client's identity, if it has one."""
    began = time.monotonic()
    if tls is None and client.identity is not None:
        tls = await mesh.certificates.context(client.identity)
    with _Observations(mesh) as observations:
        source = None
        try:
            connection = await CallConnection.open(target, tls=tls, source_address=client.address, timeout=timeout)
            source = "{}:{}".format(*connection.local_address)
            try:
                await connection.send(request)
                if isinstance(request, HttpRequest):
                    called = await connection.response(timeout)
                else:
                    called = await connection.raw(timeout, len(request) or 1)
            finally:  # a proxy logs a connection after its end, also on the side of the application
                await connection.close(reset=True)
        except (OSError, EOFError, Malformed) as error:
            called = Called(0, error=problem(error))
        called = replace(called, elapsed_ms=(time.monotonic() - began) * 1000)
        observation = await observations.wait_for(source)
        if observation is None and not called.bytes_received and called.error is None:
            called = replace(called, status=0, error=problem(TimeoutError()))  # its verdict is unknown
        return called, observation


class _Observations:
    """The decisions that proxies log during a call."""

    def __init__(self, mesh: LocalMesh) -> None:
        self._mesh = mesh
        self._by_source: dict[str, Observation] = {}
        self._arrived = asyncio.Event()

    def __enter__(self) -> _Observations:
        self._stop = self._mesh.listen(self._on_event)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _on_event(self, event: MeshEvent) -> None:
        if isinstance(event, Decided) and event.observation.source is not None:
            self._by_source.setdefault(event.observation.source, event.observation)
            self._arrived.set()

    async def wait_for(self, source: str | None) -> Observation | None:
        """Return the log line about the connection from this address, or None."""
        if source is None:
            return None
        try:
            async with asyncio.timeout(_LOG_TIMEOUT_SECONDS):
                while source not in self._by_source:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return None
        return self._by_source[source]
