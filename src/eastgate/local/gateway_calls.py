"""Makes real calls through gateways, in HTTP and in MCP, and decides the same questions with the engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from eastgate.authority.questions import Question
from eastgate.basics.records import dataclass
from eastgate.control.access_log import Observation
from eastgate.envoy.plan.gateway import GatewayDestination
from eastgate.ir.attributes import each_header
from eastgate.local.calling import CallResult, Client, McpResult, make_call
from eastgate.local.gateway_entrances import GatewayEntrance, entrances, tls_of
from eastgate.local.machine.connection import HttpRequest
from eastgate.local.mesh import LocalMesh
from eastgate.reading.mcp.client import CallOutcome, Post, PostAnswer, converse, list_tools, make_request
from eastgate.reading.mcp.messages import NAMED, BadMessage, read_messages
from eastgate.reading.strict_json import Json


@dataclass(frozen=True, slots=True)
class McpRequest:
    """An MCP request to make. Without a version, the newest version of the server is used."""

    method: str
    params: Mapping[str, Json] = field(default_factory=dict)
    version: str | None = None


class _NoAnswer(Exception):  # noqa: N818 - the name is an event
    """A step of a conversation has no answer, so that the conversation cannot continue."""


class GatewayCaller:
    """Calls gateways as one client."""

    def __init__(self, mesh: LocalMesh, client: Client, timeout: float) -> None:
        self._mesh = mesh
        self._client = client
        self._timeout = timeout

    def entrances(self, question: Question, mcp: McpRequest | None) -> Sequence[GatewayEntrance]:
        """Return the entrances for the call of a question. Raises QuestionError if there is none."""
        return entrances(self._mesh, question, speaks_mcp=mcp is not None)

    async def call(self, entrance: GatewayEntrance, body: bytes, mcp: McpRequest | None) -> CallResult:
        """Make a call, in MCP if the request is one."""
        if mcp is not None:
            return await self._converse(entrance, mcp)
        return await self._send(entrance, _with_message(entrance.question, body), body)

    async def _send(self, entrance: GatewayEntrance, question: Question, body: bytes) -> CallResult:
        headers = [("host", question.host or ""), *each_header(question.headers or {})]
        request = HttpRequest(question.method or "GET", question.path or "/", tuple(headers), body)
        tls = await tls_of(self._mesh, self._client, entrance)
        called, observation = await make_call(self._mesh, self._client, entrance.target, request, self._timeout, tls)
        destination = self._destination(entrance, observation)
        decision = self._mesh.authority.enforced(question, destination.points if destination is not None else None)
        at = f"{entrance.site.node}:{entrance.port}"
        return CallResult(question, at, called, observation, decision, destination)

    def _destination(self, entrance: GatewayEntrance, observation: Observation | None) -> GatewayDestination | None:
        if observation is None or observation.destination is None:
            return None
        return self._mesh.enforcement.plans.find_destination(entrance.site.node, entrance.port, observation.destination)

    async def _converse(self, entrance: GatewayEntrance, mcp: McpRequest) -> CallResult:
        steps: list[CallResult] = []

        async def send(post: Post) -> PostAnswer:
            step = await self._send(entrance, _question_of(post, entrance.question), post.body)
            steps.append(step)
            if step.called.status == 0 and post.method != "DELETE":
                raise _NoAnswer
            return PostAnswer(step.called.status, step.called.headers, step.called.body)

        if mcp.method == "tools/list" and not mcp.params:
            conversation = list_tools(mcp.version)
        else:
            conversation = make_request(mcp.method, mcp.params, mcp.version)
        try:
            result = _result_of(await converse(conversation, send))
        except _NoAnswer:
            result = McpResult(mcp.method, mcp.version, problem="there was no answer")
        except BadMessage as problem:
            result = McpResult(mcp.method, mcp.version, problem=f"the answer is no MCP message: {problem}")
        return replace(_decisive(steps, mcp), mcp=result, steps=tuple(steps))


def _with_message(question: Question, body: bytes) -> Question:
    """Return the question with the MCP message in the body, if it is one."""
    try:
        [message] = read_messages(body)
    except ValueError:
        return question
    return replace(question, mcp_method=message.method, tool=message.name)


def _question_of(post: Post, question: Question) -> Question:
    """Return the question about a step of a conversation."""
    headers = {**(question.headers or {}), **{name: [value] for name, value in post.headers}}
    asked = replace(question, method=post.method, headers=headers)
    if not post.body:
        return asked
    message = json.loads(post.body)
    name = (message.get("params") or {}).get(NAMED.get(message["method"], ""))
    return replace(asked, mcp_method=message["method"], tool=name)


def _result_of(outcome: CallOutcome) -> McpResult:
    problem = None
    if outcome.result is None and outcome.error is None:
        problem = f"the answer is no MCP message: HTTP {outcome.answer.status}"
    return McpResult(outcome.method, outcome.version, outcome.result, outcome.error, problem)


def _decisive(steps: Sequence[CallResult], mcp: McpRequest) -> CallResult:
    """Return the step that counts: the first denied one, or else the request itself.

    Older versions begin with a handshake and end with a DELETE. A denial of the DELETE no longer matters.
    """
    posts = [step for step in steps if step.question.method == "POST"]
    denied = (step for step in posts if not step.allowed)
    requests = (step for step in reversed(posts) if step.question.mcp_method == mcp.method)
    return next(denied, None) or next(requests, posts[-1])
