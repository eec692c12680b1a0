"""Makes real calls through the mesh, and asks the engine the same question."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType

from eastgate.api.decisions import Decision
from eastgate.api.questions import (
    BAD_ATTRIBUTE,
    BAD_DESTINATION,
    BAD_SOURCE,
    Arrival,
    Question,
    QuestionError,
    arrivals,
)
from eastgate.ir.attributes import ADDRESS, IDENTITY, MESH_NAME, PORT, SOURCE_WORKLOAD
from eastgate.ir.fields import each_header
from eastgate.mesh.access_log import Observation
from eastgate.mesh.events import Decided, MeshEvent
from eastgate.mesh.local.connection import Called, Connection, HttpRequest, Target, problem
from eastgate.mesh.local.http1 import Malformed
from eastgate.mesh.mesh import LocalMesh
from eastgate.records import dataclass
from eastgate.symbolic.names import MeshNames

__all__ = ["CallResult", "Client", "client_of", "make_calls"]

_LOG_TIMEOUT = 15.0  # seconds that a proxy may take to write its line; on a busy machine it takes its time
_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Client:
    """The identity, or none, and the source address from which a call is made."""

    identity: str | None
    address: str


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call that was made: the response, what the proxy logged, and what the engine decides."""

    question: Question
    at: str
    called: Called
    observation: Observation | None
    decision: Decision

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
            and not (observation.detail or "via_upstream").startswith("via_upstream")
        )
        return self.called.status != 0 and not by_proxy

    @property
    def agrees(self) -> bool:
        return self.allowed == self.decision.allowed


async def make_calls(
    mesh: LocalMesh, question: Question, *, body: bytes = b"", raw: bool = False, timeout: float = _TIMEOUT
) -> list[CallResult]:
    """Call every workload that the question leads to. Raises QuestionError where it leads nowhere.

    `raw`: connect and send the body as it is, instead of an HTTP request.
    """
    asked = _complete(question, raw)
    world = mesh.authority.world
    made: list[CallResult] = []
    for arrival in arrivals(asked, world, mesh.settings):
        workload = str(arrival.points[0])
        site = mesh.sites.get(workload)
        if site is None:
            raise QuestionError(BAD_DESTINATION, f"{workload} has no proxy in this mesh", "call a pod or a Service")
        port = _port(arrival, site.ports)
        client = client_of(mesh, arrival)
        call_question = replace(
            asked,
            source=_canonical(asked.source, mesh),
            to=f"pod:{world.workloads[workload].namespace}/{world.workloads[workload].name}",
            port=port,
            source_ip=client.address,
        )
        pod = world.workloads[workload]
        request: HttpRequest | bytes = (
            body if raw else _request(call_question, body, f"{pod.name}.{pod.namespace}:{port}")
        )
        called, observation = await _call(mesh, client, Target(site.address, site.ports[port]), request, timeout)
        made.append(
            CallResult(call_question, f"{workload}:{port}", called, observation, mesh.authority.enforced(call_question))
        )
    return made


def _complete(question: Question, raw: bool) -> Question:
    """Fill in the method, path and headers of the HTTP request that is sent."""
    if raw:
        return question
    return replace(
        question, method=question.method or "GET", path=question.path or "/", headers=dict(question.headers or {})
    )


def _port(arrival: Arrival, ports: Mapping[int, int]) -> int:
    port = arrival.request.get(PORT)
    if isinstance(port, int):
        if port not in ports:
            declared = ", ".join(map(str, sorted(ports))) or "none"
            raise QuestionError(BAD_ATTRIBUTE, f"{arrival.where} has no port {port}", f"it has {declared}")
        return port
    if len(ports) != 1:
        declared = ", ".join(map(str, sorted(ports))) or "none"
        raise QuestionError(
            BAD_ATTRIBUTE, f"{arrival.where} has not one port but {len(ports)}", f"--port, of {declared}"
        )
    return next(iter(ports))


def client_of(mesh: LocalMesh, arrival: Arrival) -> Client:
    """Return the client that makes the call of an arrival. A pod calls from its own address."""
    request = arrival.request
    identity, name = request.get(IDENTITY), request.get(MESH_NAME)
    if identity is None and name is not None:
        raise QuestionError(
            BAD_SOURCE, f"`{name}` is no SPIFFE ID: no certificate here has a name alone", "use sa: or pod:"
        )
    pod = mesh.sites.get(str(request.get(SOURCE_WORKLOAD)))
    address = request.get(ADDRESS)
    if pod is not None:
        return Client(str(identity) if identity else None, pod.address)
    if isinstance(address, str) and not address.startswith("127."):
        raise QuestionError(BAD_ATTRIBUTE, f"nobody can call from {address} here", "use an address in 127.0.0.0/8")
    return Client(str(identity) if identity else None, address if isinstance(address, str) else mesh.own_address)


def _canonical(source: str, mesh: LocalMesh) -> str:
    """Return the account of a SPIFFE ID as `--from` names it: in the mesh an account has all of its names."""
    account = MeshNames(mesh.settings).account(source)
    return f"sa:{account[0]}/{account[1]}" if account is not None else source


def _request(question: Question, body: bytes, host: str) -> HttpRequest:
    headers = [("host", question.host or host), *each_header(question.headers or {})]
    return HttpRequest(question.method or "GET", question.path or "/", tuple(headers), body)


async def _call(
    mesh: LocalMesh, client: Client, target: Target, request: HttpRequest | bytes, timeout: float
) -> tuple[Called, Observation | None]:
    began = time.monotonic()
    tls = await mesh.certificates.context(client.identity) if client.identity is not None else None
    with _Observations(mesh) as observations:
        source = None
        try:
            connection = await Connection.open(target, tls=tls, source_address=client.address, timeout=timeout)
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
