"""Makes one real call to a proxy, and finds what the proxy logged about it."""

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

# The results of calls: what came back, what the proxy logged, and what the engine decides.


_BY_PROXY = "proxy/"
_OF_PROTOCOL = (UNREAD_MESSAGE, NO_SESSION, NO_SUCH_SESSION)
_ANSWERED = ("via_upstream", "direct_response")  # how the details begin where an answer is that of the application


@dataclass(frozen=True, slots=True)
class McpResult:
    """What an MCP request came to: a result, an error, or a `problem` with the answer, which is neither."""

    method: str
    version: str | None
    result: Mapping[str, Json] | None = None
    error: RpcError | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """What `check` answers to the question of a call: a decision, or why it gives none.

    `causes` say why the mesh does otherwise, where it does.
    """

    question: Question
    answer: Decision | QuestionError
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call that was made: the response, what the proxy logged, and what the engine decides.

    A gateway leads it to a `destination`. An MCP request has a result, and takes several `steps`, of which this is the
    one that counts: the first that was denied, or the request itself. `check` is what the command of that name answers.
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
        """Return whether the proxy let it through. Where it logged nothing, only a 200 counts as allowed."""
        return self.observation.allowed if self.observation is not None else self.called.status == 200

    @property
    def answered(self) -> bool:
        """Return whether the application answered, rather than the proxy for it."""
        observation = self.observation
        by_proxy = (
            observation is not None
            and observation.allowed
            and not (observation.detail or "via_upstream").startswith(_ANSWERED)
        )
        return self.called.status != 0 and not by_proxy

    @property
    def agrees(self) -> bool:
        """Return whether proxy and engine decide alike, as far as both know the same, in every step."""
        return (self.allowed == self.decision.allowed or self.is_beyond_engine) and all(
            step.agrees for step in self.steps
        )

    @property
    def is_as_checked(self) -> bool:
        """Return whether `check` answers what the proxy does, as far as both are known."""
        if self.check is None or (self.observation is None and self.called.status == 0):
            return True
        return isinstance(self.check.answer, Decision) and self.check.answer.allowed == self.allowed

    @property
    def is_beyond_engine(self) -> bool:
        """Return whether the engine does not know what decided.

        It may be an authorizer's answer, that a route is closed, or that it is no proper message of MCP.
        """
        observation = self.observation
        if observation is None or self.destination is None:
            return False
        if not observation.allowed and (observation.who.startswith(_BY_PROXY) or observation.who in _OF_PROTOCOL):
            return True
        return observation.asked and any(layer.asks for layer in self.decision.layers)


_LOG_TIMEOUT = 15.0  # seconds that a proxy may take to write its line; on a busy machine it takes its time


@dataclass(frozen=True, slots=True)
class Client:
    """The identity, or none, and the source address from which a call is made."""

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
            finally:  # a proxy tells of a connection when it has ended, also on the side of the application
                await connection.close(reset=True)
        except (OSError, EOFError, Malformed) as error:
            called = Called(0, error=problem(error))
        called = replace(called, elapsed_ms=(time.monotonic() - began) * 1000)
        observation = await observations.wait_for(source)
        if observation is None and not called.bytes_received and called.error is None:
            called = replace(called, status=0, error=problem(TimeoutError()))  # it is unknown whether it was allowed
        return called, observation


class _Observations:
    """The decisions that proxies log while a call is made."""

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
        """Return what was logged about the connection from this address; None where that is nothing."""
        if source is None:
            return None
        try:
            async with asyncio.timeout(_LOG_TIMEOUT):
                while source not in self._by_source:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return None
        return self._by_source[source]
