"""What commands can ask of a running mesh, over its control socket."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, fields

from eastgate.mesh.calls import Call, make_calls
from eastgate.mesh.codes import NO_NUMBER
from eastgate.mesh.events import Event
from eastgate.mesh.local.control import ControlFailed, Handler, Message
from eastgate.mesh.loglines import observed, record_in
from eastgate.mesh.mesh import LocalMesh
from eastgate.mesh.records import Observed
from eastgate.mesh.sites import Site, identity_of
from eastgate.mesh.telling import Teller
from eastgate.mesh.why import Explain, why
from eastgate.questions import Question, QuestionError

__all__ = ["Handlers", "application_of", "status_of", "workload_to_json"]

_QUEUED = 10_000
_LONGEST_CALL = 60.0
_ASKED = frozenset(field.name for field in fields(Question)) - {"token", "certificate", "external_auth", "claims"}


class Handlers:
    """The answers of one mesh."""

    def __init__(self, mesh: LocalMesh, teller: Teller, explain: Explain, stop: Callable[[], None]) -> None:
        self._mesh = mesh
        self._teller = teller
        self._explain = explain
        self._stop = stop

    def all(self) -> Mapping[str, Handler]:
        """The handlers by the names under which they are asked for."""
        return {
            "call": self.call,
            "why": self.why,
            "status": self.status,
            "events": self.events,
            "metrics": self.metrics,
            "stop": self.stop,
        }

    async def call(self, arguments: Message) -> Message:
        """Make a call. What is wrong with the question is an answer too."""
        question, body, timeout = _question(arguments), _body(arguments), _timeout(arguments)
        raw, explained, color = (bool(arguments.get(name)) for name in ("raw", "explain", "color"))
        try:
            made = await make_calls(self._mesh, question, body=body, raw=raw, timeout=timeout)
        except QuestionError as error:
            return {"failed": error.diagnostic.to_json()}
        return {"calls": [self._told(one, explained, color) for one in made]}

    def _told(self, call: Call, explained: bool, color: bool) -> Message:
        decision, called, seen = call.decision, call.called, call.seen
        handshake = seen is not None and seen.level == "handshake"
        made = seen is not None or called.status != 0  # else it is not known whether it was let in
        told: Message = {
            "question": str(call.question),
            "at": call.at,
            "made": made,
            "verdict": "allow" if call.allowed else "deny",
            "answered": call.answered,
            "status": called.status,
            "error": called.error,
            "milliseconds": round(called.elapsed_ms, 3),
            "proxy": self._teller.seen_to_json(seen) if seen is not None else None,
            "engine": decision.to_json(),
            "agrees": call.agrees or handshake or not made,
            "note": self._note(call, seen),
            "body": called.body.decode("utf-8", "replace"),
        }
        if explained:
            told["explanation"] = None if handshake else self._explain(decision, color)
        return told

    def _note(self, call: Call, seen: Observed | None) -> str | None:
        """What the verdicts alone do not tell."""
        if seen is not None and seen.level == "handshake":
            return "the handshake failed, so that no policy was asked"
        if seen is None and call.called.status == 0:
            return f"the proxy logged no decision, so that nobody knows whether it was let in: {call.called.error}"
        workload, _, port = call.at.rpartition(":")
        closure = self._mesh.enforcement.closed.get((workload, int(port)))
        if closure is not None:
            return str(closure)
        if seen is not None and seen.allowed and not call.answered:
            came = call.called.error or f"the proxy answered {call.called.status} in its place"
            return f"the proxy let it through, and the application did not answer: {came}"
        return None

    async def why(self, arguments: Message) -> Message:
        """Explain a line of a proxy's log, or the decision of a number; the last one where neither is given."""
        try:
            found = why(self._asked_about(arguments.get("line"), arguments.get("number")), self._mesh.authority)
        except QuestionError as error:
            return {"failed": error.diagnostic.to_json()}
        color = bool(arguments.get("color"))
        return {"why": found.to_json(self._explain), "text": found.text(self._explain, color=color)}

    def _asked_about(self, line: object, number: object) -> Observed:
        if isinstance(line, str):
            return observed(record_in(line), line)
        history = self._mesh.history
        found = history.find(number if isinstance(number, int) else None)
        if found is None:
            kept = history.kept
            way_out = f"there are {kept[0]} to {kept[1]}" if kept else "make a call first"
            what = f"no decision has the number {number}" if isinstance(number, int) else "nothing was decided yet"
            raise QuestionError(NO_NUMBER, what, way_out)
        return found

    async def status(self, _arguments: Message) -> Message:
        """Who is there, and what each proxy has."""
        return status_of(self._mesh)

    async def events(self, _arguments: Message) -> AsyncIterator[Message]:
        """Everything that happens from now on. Who does not keep up misses some, and is told how many."""
        waiting: asyncio.Queue[Event] = asyncio.Queue(_QUEUED)
        missed = 0

        def heard(event: Event) -> None:
            nonlocal missed
            try:
                waiting.put_nowait(event)
            except asyncio.QueueFull:
                missed += 1

        stop = self._mesh.listen(heard)

        async def items() -> AsyncIterator[Message]:
            nonlocal missed
            try:
                while True:
                    yield self._teller.to_json(await waiting.get())
                    if missed:
                        yield {"event": "missed", "events": missed}
                        missed = 0
            finally:
                stop()

        return items()

    async def metrics(self, _arguments: Message) -> Message:
        """The metrics as Prometheus reads them."""
        return {"text": self._mesh.metrics.text().decode()}

    async def stop(self, _arguments: Message) -> Message:
        """Stop the mesh, after this answer."""
        asyncio.get_running_loop().call_later(0.05, self._stop)
        return {"stopping": self._mesh.options.name}


def status_of(mesh: LocalMesh) -> Message:
    """The mesh as plain data."""
    proxies = {proxy.node: proxy for proxy in mesh.server.proxies()}
    workloads = []
    for key in sorted(mesh.sites):
        proxy = proxies.get(key)
        connected = proxy.connected_since if proxy is not None else None
        told = workload_to_json(mesh, mesh.sites[key])
        told["proxy"] = {
            "connected": connected.isoformat() if connected is not None else None,
            "accepted": proxy is not None and proxy.settled and not proxy.rejected,
            "rejected": [
                {"name": one.name, "message": one.rejection.message, "policies": sorted(one.rejection.policies)}
                for one in (proxy.rejected if proxy is not None else ())
                if one.rejection is not None
            ],
        }
        workloads.append(told)
    return {
        "name": mesh.options.name,
        "policies": len(mesh.authority.policies),
        "settings": mesh.settings.to_json(),
        "workloads": workloads,
        "notEnforced": [asdict(closure) for _, closure in sorted(mesh.enforcement.closed.items())],
    }


def workload_to_json(mesh: LocalMesh, site: Site) -> Message:
    """A workload and where it is."""
    workload = mesh.authority.world.workloads[site.workload]
    return {
        "workload": site.workload,
        "address": site.address,
        "ports": {str(port): bound for port, bound in sorted(site.ports.items())},
        "applications": {str(port): application_of(site, port) for port in sorted(site.apps)},
        "identity": identity_of(workload, mesh.settings),
        "policies": sorted(str(one.policy.ref) for one in mesh.authority.engine.attached(site.workload)),
    }


def application_of(site: Site, port: int) -> str:
    """What answers at a port: an address of the user's, or the built-in application."""
    app = site.apps[port]
    return "built-in" if app.host.startswith("/") else f"{app.host}:{app.port}"


def _question(arguments: Message) -> Question:
    given = {name: value for name, value in arguments.items() if name in _ASKED and value is not None}
    for name in ("source", "to"):
        if not isinstance(given.get(name), str):
            raise ControlFailed(f"a call has a `{name}`")
    return Question(**given)


def _body(arguments: Message) -> bytes:
    try:
        return base64.b64decode(str(arguments.get("body") or ""), validate=True)
    except binascii.Error:
        raise ControlFailed("`body` is in base64") from None


def _timeout(arguments: Message) -> float:
    timeout = arguments.get("timeout", 5.0)
    if not isinstance(timeout, int | float) or not 0 < timeout <= _LONGEST_CALL:
        raise ControlFailed(f"`timeout` is up to {_LONGEST_CALL:.0f} seconds")
    return float(timeout)
