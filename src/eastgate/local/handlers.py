"""Answers requests of commands to a running mesh, over its control socket."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict

from eastgate.authority.authority import programs_of
from eastgate.authority.questions import Question, QuestionError
from eastgate.cluster.question import RequestParts
from eastgate.control.access_log import Observation, find_record, read_line
from eastgate.control.codes import NO_NUMBER
from eastgate.control.events import MeshEvent
from eastgate.control.gateways import GatewaySite, gateway_identity
from eastgate.control.sites import ProxySite, identity_of
from eastgate.envoy.server.status import ProxyStatus
from eastgate.local.calling import CallResult, McpResult
from eastgate.local.calls import McpRequest, make_calls
from eastgate.local.event_text import EventText
from eastgate.local.guarding import policies_at
from eastgate.local.machine.control import ControlFailed, Handler, Message
from eastgate.local.mesh import LocalMesh
from eastgate.reports.explain import explain
from eastgate.reports.why.proxies import explain_observation

_MAX_QUEUED_EVENTS = 10_000
_MAX_CALL_SECONDS = 60.0
_QUESTION_PARTS = RequestParts.__annotations__.keys() - {
    "token",
    "certificate",
    "external_auth",
    "claims",
}


class Handlers:
    """The handlers of one mesh."""

    def __init__(self, mesh: LocalMesh, event_text: EventText, stop: Callable[[], None]) -> None:
        self._mesh = mesh
        self._event_text = event_text
        self._stop = stop

    def all(self) -> Mapping[str, Handler]:
        """Return the handlers by the names of their requests."""
        return {
            "call": self.call,
            "why": self.why,
            "status": self.status,
            "events": self.events,
            "metrics": self.metrics,
            "stop": self.stop,
        }

    async def call(self, arguments: Message) -> Message:
        """Make calls. An error in the question is an answer too."""
        body, timeout = _body(arguments), _timeout(arguments)
        raw, explained, color = (bool(arguments.get(name)) for name in ("raw", "explain", "color"))
        try:
            question = _question(arguments, self._mesh.settings.namespace)
            made = await make_calls(
                self._mesh, question, body=body, raw=raw, mcp=_mcp_request(arguments), timeout=timeout
            )
        except QuestionError as error:
            return {"failed": error.diagnostic.to_json()}
        return {"calls": [self._call_to_json(call, explained, color) for call in made]}

    def _call_to_json(self, call: CallResult, explained: bool, color: bool) -> Message:
        decision, called, observation = call.decision, call.called, call.observation
        handshake = observation is not None and observation.level == "handshake"
        made = observation is not None or called.status != 0  # otherwise the verdict is unknown
        message: Message = {
            "question": str(call.question),
            "at": call.at,
            "made": made,
            "verdict": "allow" if call.allowed else "deny",
            "answered": call.answered,
            "status": called.status,
            "error": called.error,
            "milliseconds": round(called.elapsed_ms, 3),
            "proxy": self._event_text.observation_to_json(observation) if observation is not None else None,
            "engine": decision.to_json(),
            "agrees": call.agrees or handshake or not made,
            "check": _check_to_json(call),
            "note": self._describe_note(call, observation),
            "body": called.body.decode("utf-8", "replace"),
            "way": call.destination.title if call.destination is not None else None,
            "mcp": _mcp_to_json(call.mcp) if call.mcp is not None else None,
            "steps": [_step_to_json(step) for step in call.steps],
        }
        if explained:
            message["explanation"] = None if handshake else explain(decision, color=color)
        return message

    def _describe_note(self, call: CallResult, observation: Observation | None) -> str | None:
        """Describe a fact beside the verdicts."""
        if observation is not None and observation.level == "handshake":
            return "the handshake failed, so that no policy was asked"
        if observation is None and call.called.status == 0:
            return f"the proxy logged no decision, so that the verdict is unknown: {call.called.error}"
        workload, _, port = call.at.rpartition(":")
        closure = self._mesh.enforcement.closure_of(workload, int(port))
        if closure is not None and closure.covers(call.destination.points if call.destination is not None else ()):
            return str(closure)
        if call.is_beyond_engine and call.allowed != call.decision.allowed:
            return _describe_difference(call)
        if observation is not None and observation.allowed and not call.answered:
            came = call.called.error or f"the proxy answered {call.called.status} in its place"
            return f"the proxy let it through, and the application did not answer: {came}"
        return None

    async def why(self, arguments: Message) -> Message:
        """Explain a line of a proxy's log, or the decision with a number; without both, the last decision."""
        try:
            explanation = explain_observation(
                self._find_observation(arguments.get("line"), arguments.get("number")), self._mesh.authority
            )
        except QuestionError as error:
            return {"failed": error.diagnostic.to_json()}
        color = bool(arguments.get("color"))
        return {"why": explanation.to_json(), "text": explanation.text(color=color)}

    def _find_observation(self, line: object, number: object) -> Observation:
        if isinstance(line, str):
            return read_line(find_record(line), line)
        history = self._mesh.history
        observation = history.find(number if isinstance(number, int) else None)
        if observation is None:
            kept = history.kept
            way_out = f"there are {kept[0]} to {kept[1]}" if kept else "make a call first"
            what = f"no decision has the number {number}" if isinstance(number, int) else "nothing was decided yet"
            raise QuestionError(NO_NUMBER, what, way_out)
        return observation

    async def status(self, _arguments: Message) -> Message:
        return status_of(self._mesh)

    async def events(self, _arguments: Message) -> AsyncIterator[Message]:
        """Yield every event from now on. A slow client misses some events, and gets their number."""
        waiting: asyncio.Queue[MeshEvent] = asyncio.Queue(_MAX_QUEUED_EVENTS)
        missed = 0

        def enqueue(event: MeshEvent) -> None:
            nonlocal missed
            try:
                waiting.put_nowait(event)
            except asyncio.QueueFull:
                missed += 1

        stop = self._mesh.listen(enqueue)

        async def items() -> AsyncIterator[Message]:
            nonlocal missed
            try:
                while True:
                    yield self._event_text.to_json(await waiting.get())
                    if missed:
                        yield {"event": "missed", "events": missed}
                        missed = 0
            finally:
                stop()

        return items()

    async def metrics(self, _arguments: Message) -> Message:
        """Return the metrics in Prometheus' text format."""
        return {"text": self._mesh.metrics.text().decode()}

    async def stop(self, _arguments: Message) -> Message:
        """Stop the mesh, after this answer."""
        asyncio.get_running_loop().call_later(0.05, self._stop)
        return {"stopping": self._mesh.options.name}


def status_of(mesh: LocalMesh) -> Message:
    """Return the state of the mesh as plain data."""
    proxies = {proxy.node: proxy for proxy in mesh.server.proxies()}
    workloads = [
        {
            **workload_to_json(mesh, site),
            "proxy": _proxy_to_json(proxies.get(site.proxy)),
            **({"waypoint": _proxy_to_json(proxies.get(site.waypoint.name))} if site.waypoint is not None else {}),
        }
        for _, site in sorted(mesh.sites.items())
    ]
    gateways = [
        {**gateway_to_json(mesh, mesh.gateways[node]), "proxy": _proxy_to_json(proxies.get(node))}
        for node in sorted(mesh.gateways)
    ]
    return {
        "name": mesh.options.name,
        "policies": len(mesh.authority.policies),
        "settings": mesh.settings.to_json(),
        "workloads": workloads,
        "gateways": gateways,
        "notEnforced": [asdict(closure) for _, closure in sorted(mesh.enforcement.closed.items())],
    }


def _proxy_to_json(proxy: ProxyStatus | None) -> Message:
    connected = proxy.connected_since if proxy is not None else None
    return {
        "connected": connected.isoformat() if connected is not None else None,
        "accepted": proxy is not None and proxy.settled and not proxy.rejected,
        "rejected": [
            {
                "name": resource.name,
                "message": resource.rejection.message,
                "policies": sorted(resource.rejection.policies),
            }
            for resource in (proxy.rejected if proxy is not None else ())
            if resource.rejection is not None
        ],
    }


def gateway_to_json(mesh: LocalMesh, site: GatewaySite) -> Message:
    return {
        "gateway": site.node,
        "address": site.address,
        "ports": {str(port): bound for port, bound in sorted(site.ports.items())},
        "identity": gateway_identity(site.gateway, mesh.settings),
        "policies": sorted(policies_behind(mesh, site)),
    }


def policies_behind(mesh: LocalMesh, site: GatewaySite) -> frozenset[str]:
    """Return the policies at a gateway, its routes and their backends."""
    points = {
        point
        for port in site.ports
        for destination in mesh.enforcement.plans.of_gateway(site.node, port).destinations
        for point in destination.points
    }
    return frozenset(
        str(attachment.policy.ref) for point in points for attachment in programs_of(mesh.authority).attached(point)
    )


def workload_to_json(mesh: LocalMesh, site: ProxySite) -> Message:
    workload = mesh.authority.world.workloads[site.workload]
    return {
        "workload": site.workload,
        "address": site.address,
        "ports": {str(port): bound for port, bound in sorted(site.ports.items())},
        "applications": {str(port): application_of(site, port) for port in sorted(site.apps)},
        "identity": identity_of(workload, mesh.settings),
        "policies": list(policies_at(site.workload, mesh.authority)),
    }


def application_of(site: ProxySite, port: int) -> str:
    """Return the application at a port: an address of the user's, or `built-in`."""
    app = site.apps[port]
    return "built-in" if app.host.startswith("/") else f"{app.host}:{app.port}"


def _describe_difference(call: CallResult) -> str:
    """Describe an input that only a gateway knows, and the engine does not."""
    if call.observation is not None and call.observation.asked:
        return "an authorizer was asked, whose answer the engine does not know"
    if call.destination is not None and call.destination.unsupported:
        undone = ", ".join(call.destination.unsupported)
        return f"the gateway closes this route, since it does not support all of it: {undone}"
    return "the policies allow it, and the gateway has no server for it"


def _check_to_json(call: CallResult) -> Message | None:
    """Return the answer of `check` to the question of a call; None if it was not asked."""
    if call.check is None:
        return None
    shared: Message = {"agrees": call.is_as_checked, "causes": list(call.check.causes)}
    answer = call.check.answer
    if isinstance(answer, QuestionError):
        return {**shared, "verdict": None, "reason": answer.diagnostic.message, "file": None, "line": None}
    span = answer.span
    return {
        **shared,
        "verdict": answer.verdict.value,
        "reason": answer.reason,
        "file": span.file if span is not None else None,
        "line": span.line if span is not None else None,
    }


def _mcp_to_json(result: McpResult) -> Message:
    error = result.error
    return {
        "method": result.method,
        "version": result.version,
        "result": dict(result.result) if result.result is not None else None,
        "error": {"code": error.code, "message": error.message, "data": error.data} if error is not None else None,
        "problem": result.problem,
    }


def _step_to_json(step: CallResult) -> Message:
    question = step.question
    return {
        "method": question.method,
        "mcpMethod": question.mcp_method,
        "tool": question.tool,
        "status": step.called.status,
        "verdict": "allow" if step.allowed else "deny",
        "agrees": step.agrees,
        "decision": step.observation.decision if step.observation is not None else None,
    }


def _mcp_request(arguments: Message) -> McpRequest | None:
    given = arguments.get("mcp")
    if given is None:
        return None
    if not isinstance(given, dict) or not isinstance(given.get("method"), str):
        raise ControlFailed("an MCP request has a `method`")
    params, version = given.get("params") or {}, given.get("version")
    if not isinstance(params, dict) or not isinstance(version, str | None):
        raise ControlFailed("the `params` of an MCP request are an object, and its `version` is text")
    return McpRequest(given["method"], params, version)


def _question(arguments: Message, namespace: str) -> Question:
    given = {name: value for name, value in arguments.items() if name in _QUESTION_PARTS and value is not None}
    source, to = arguments.get("source"), arguments.get("to")
    if not isinstance(source, str) or not isinstance(to, str):
        raise ControlFailed("a call has a `source` and a `to`")
    return Question.of(source, to, namespace=namespace, **given)


def _body(arguments: Message) -> bytes:
    try:
        return base64.b64decode(str(arguments.get("body") or ""), validate=True)
    except binascii.Error:
        raise ControlFailed("`body` is in base64") from None


def _timeout(arguments: Message) -> float:
    timeout = arguments.get("timeout", 5.0)
    if not isinstance(timeout, int | float) or not 0 < timeout <= _MAX_CALL_SECONDS:
        raise ControlFailed(f"`timeout` is up to {_MAX_CALL_SECONDS:.0f} seconds")
    return float(timeout)
