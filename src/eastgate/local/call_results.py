"""The results of calls: what came back, what the proxy logged, and what the engine decides."""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question, QuestionError
from eastgate.basics.records import dataclass
from eastgate.control.access_log import Observation
from eastgate.envoy.plan.gateway import NO_SESSION, NO_SUCH_SESSION, UNREAD_MESSAGE, GatewayDestination
from eastgate.local.machine.connection import Called
from eastgate.reading.mcp.client import RpcError
from eastgate.reading.strict_json import Json

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
