"""Real calls through the mesh, each beside what the engine says of the same question."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType

from eastgate.decisions import Decision
from eastgate.mesh.events import Decided, Event
from eastgate.mesh.local.connection import Called, Connection, HttpRequest, Target, problem
from eastgate.mesh.local.http1 import Malformed
from eastgate.mesh.mesh import LocalMesh
from eastgate.mesh.records import Observed
from eastgate.policy.attributes import ADDRESS, IDENTITY, MESH_NAME, PORT, SOURCE_WORKLOAD
from eastgate.policy.fields import each_header
from eastgate.questions import BAD_ATTRIBUTE, BAD_DESTINATION, BAD_SOURCE, Arrival, Question, QuestionError, arrivals
from eastgate.symbolic.names import MeshNames

__all__ = ["Call", "Caller", "caller_of", "make_calls"]

_LOGGED = 15.0  # seconds that a proxy may take to write its line; on a busy machine it takes its time
_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: an identity or none, from an address."""

    identity: str | None
    address: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was made: what came of it, what the proxy logged, and what the engine says."""

    question: Question
    at: str
    called: Called
    seen: Observed | None
    decision: Decision

    @property
    def allowed(self) -> bool:
        """Whether the proxy let it through. Where it logged nothing, no answer is a no."""
        return self.seen.allowed if self.seen is not None else self.called.status == 200

    @property
    def answered(self) -> bool:
        """Whether an answer came, and not the proxy's word that the application gave none."""
        seen = self.seen
        by_proxy = seen is not None and seen.allowed and not (seen.detail or "via_upstream").startswith("via_upstream")
        return self.called.status != 0 and not by_proxy

    @property
    def agrees(self) -> bool:
        """Whether proxy and engine say the same."""
        return self.allowed == self.decision.allowed


async def make_calls(
    mesh: LocalMesh, question: Question, *, body: bytes = b"", raw: bool = False, timeout: float = _TIMEOUT
) -> list[Call]:
    """Call every workload that the question leads to. Raises QuestionError where it leads nowhere.

    `raw`: connect and send the body as it is, instead of an HTTP request.
    """
    asked = _as_sent(question, raw)
    world = mesh.authority.world
    made: list[Call] = []
    for arrival in arrivals(asked, world, mesh.settings):
        workload = str(arrival.points[0])
        site = mesh.sites.get(workload)
        if site is None:
            raise QuestionError(BAD_DESTINATION, f"{workload} has no proxy in this mesh", "call a pod or a Service")
        port = _port(arrival, site.ports)
        caller = caller_of(mesh, arrival)
        there = replace(
            asked,
            source=_canonical(asked.source, mesh),
            to=f"pod:{world.workloads[workload].namespace}/{world.workloads[workload].name}",
            port=port,
            source_ip=caller.address,
        )
        pod = world.workloads[workload]
        request: HttpRequest | bytes = body if raw else _request(there, body, f"{pod.name}.{pod.namespace}:{port}")
        called, seen = await _call(mesh, caller, Target(site.address, site.ports[port]), request, timeout)
        made.append(Call(there, f"{workload}:{port}", called, seen, mesh.authority.enforced(there)))
    return made


def _as_sent(question: Question, raw: bool) -> Question:
    """A request has a method, a path and headers, whether the question names them or not."""
    if raw:
        return question
    return replace(
        question, method=question.method or "GET", path=question.path or "/", headers=dict(question.headers or {})
    )


def _port(arrival: Arrival, ports: Mapping[int, int]) -> int:
    port = arrival.request.get(PORT)
    if isinstance(port, int):
        if port not in ports:
            known = ", ".join(map(str, sorted(ports))) or "none"
            raise QuestionError(BAD_ATTRIBUTE, f"{arrival.where} has no port {port}", f"it has {known}")
        return port
    if len(ports) != 1:
        known = ", ".join(map(str, sorted(ports))) or "none"
        raise QuestionError(BAD_ATTRIBUTE, f"{arrival.where} has not one port but {len(ports)}", f"--port, of {known}")
    return next(iter(ports))


def caller_of(mesh: LocalMesh, arrival: Arrival) -> Caller:
    """Who makes the call that an arrival stands for. A pod calls from its own address."""
    request = arrival.request
    identity, name = request.get(IDENTITY), request.get(MESH_NAME)
    if identity is None and name is not None:
        raise QuestionError(
            BAD_SOURCE, f"`{name}` is no SPIFFE ID: no certificate here has a name alone", "use sa: or pod:"
        )
    pod = mesh.sites.get(str(request.get(SOURCE_WORKLOAD)))
    address = request.get(ADDRESS)
    if pod is not None:
        return Caller(str(identity) if identity else None, pod.address)
    if isinstance(address, str) and not address.startswith("127."):
        raise QuestionError(BAD_ATTRIBUTE, f"nobody can call from {address} here", "use an address in 127.0.0.0/8")
    return Caller(str(identity) if identity else None, address if isinstance(address, str) else mesh.own_address)


def _canonical(source: str, mesh: LocalMesh) -> str:
    """In the mesh an account has all of its names, also where it is called by its SPIFFE ID."""
    account = MeshNames(mesh.settings).account(source)
    return f"sa:{account[0]}/{account[1]}" if account is not None else source


def _request(question: Question, body: bytes, host: str) -> HttpRequest:
    headers = [("host", question.host or host), *each_header(question.headers or {})]
    return HttpRequest(question.method or "GET", question.path or "/", tuple(headers), body)


async def _call(
    mesh: LocalMesh, caller: Caller, target: Target, request: HttpRequest | bytes, timeout: float
) -> tuple[Called, Observed | None]:
    began = time.monotonic()
    tls = await mesh.certificates.context(caller.identity) if caller.identity is not None else None
    with _Lines(mesh) as lines:
        source = None
        try:
            connection = await Connection.open(target, tls=tls, source_address=caller.address, timeout=timeout)
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
        seen = await lines.about(source)
        if seen is None and not called.bytes_received and called.error is None:
            called = replace(called, status=0, error=problem(TimeoutError()))  # whether it was let in is not known
        return called, seen


class _Lines:
    """The lines that proxies write while a call is made."""

    def __init__(self, mesh: LocalMesh) -> None:
        self._mesh = mesh
        self._found: dict[str, Observed] = {}
        self._more = asyncio.Event()

    def __enter__(self) -> _Lines:
        self._stop = self._mesh.listen(self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _heard(self, event: Event) -> None:
        if isinstance(event, Decided) and event.seen.source is not None:
            self._found.setdefault(event.seen.source, event.seen)
            self._more.set()

    async def about(self, source: str | None) -> Observed | None:
        """What was logged about the connection from this address; None where that is nothing."""
        if source is None:
            return None
        try:
            async with asyncio.timeout(_LOGGED):
                while source not in self._found:
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            return None
        return self._found[source]
