"""Explains a decision of a proxy's log by the manifests as they are today, and tells whether they still decide so."""

from __future__ import annotations

from collections.abc import Callable

from eastgate.authority.auditing import Audited
from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import NOT_DECLARED, Question, QuestionError, ends
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.control.access_log import AUTHORIZER, NO_ANSWER, UNREACHABLE, Observation, rule_of
from eastgate.control.deciders import DecidedBy, Deciders, caller_of, describe_handshake
from eastgate.control.destinations import Destinations
from eastgate.control.gateways import gateway_of
from eastgate.envoy.plan.decisions import UNOPPOSED_NAME, end_of, name_of, policy_name
from eastgate.envoy.plan.gateway import NO_SESSION, NO_SUCH_SESSION, UNREAD_MESSAGE
from eastgate.ir import Request, is_network
from eastgate.ir.attributes import AttributeKind

Explain = Callable[[Decision, bool], str]
"""An explanation of a decision as text; in color where the second is true."""

_GREEN, _RED, _YELLOW, _RESET = "\033[1;32m", "\033[1;31m", "\033[1;33m", "\033[0m"
_NONE = regex(r"(?:(?:in|e)gress/)?none-of-\d+(?:/\S+)?")
_AT_GATEWAY = "gateways decide requests, not connections: look for the lines of the requests on it"
_BY_PROXY = {
    "cannot-be-enforced": "the port was closed, because a policy there cannot be enforced as it is written",
    UNREAD_MESSAGE: "the gateway refuses messages that it cannot read for certain, whatever the policies say of them",
    NO_SESSION: "the gateway gives no stream without a session, whatever the policies say of it",
    NO_SUCH_SESSION: "the gateway lets nobody into a session of somebody else's, whatever the policies say of it",
    "unclear-route": "the gateway refuses what it cannot route for certain, whatever the policies say of it",
    "unknown-destination": "the routes were changing",
    NO_ANSWER: "the authorizer did not answer, so that it was refused",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A logged decision compared with the manifests of today. `holds` is None where the log tells too little."""

    holds: bool | None
    words: str


@dataclass(frozen=True, slots=True)
class Why:
    """An explained decision. A failed handshake has no `decision`: no policy was evaluated.

    `way`: the route and the backend that a gateway has led the request to. `audited`: what audited policies would have
    done, as the line tells.
    """

    observation: Observation
    decider: DecidedBy
    decision: Decision | None
    comparison: Comparison
    way: str | None = None
    audited: tuple[Audited, ...] = ()

    def text(self, explain: Explain, *, color: bool = False) -> str:
        """Render the logged decision, how it compares with today, and the explanation."""
        observation, position = self.observation, f"  ({self.decider.position})" if self.decider.position else ""
        paint = _GREEN if observation.allowed else _RED
        verdict = "ALLOWED" if observation.allowed else "DENIED"
        head = f"{paint}{verdict}{_RESET}" if color else verdict
        at = f" at {observation.time}" if observation.time else ""
        words = printable(self.comparison.words)
        lines = [
            f"the log: {head}"
            + printable(f"{at} by {observation.workload}:{observation.port}: {self.decider.text}{position}")
        ]
        lines.extend(printable(f"  {each.line}") for each in self.audited)
        if self.way is not None:
            lines.append(f"  way:   {printable(self.way)}")
        if self.decision is None:
            return "\n".join([*lines, f"  {words}"])
        shown = f"{_YELLOW}{words}{_RESET}" if color and words.startswith("changed") else words
        return "\n".join([*lines, f"  today: {shown}", "", explain(self.decision, color)])

    def to_json(self, explain: Explain) -> dict[str, object]:
        decision = self.decision
        return {
            "line": {
                "level": self.observation.level,
                "workload": self.observation.workload,
                "port": self.observation.port,
                "verdict": "allow" if self.observation.allowed else "deny",
                "decision": self.observation.decision,
                "policy": self.decider.policy,
                "rule": self.decider.rule,
                "reason": self.decider.text,
                "file": self.decider.file,
                "line": self.decider.line,
                "destination": self.observation.destination,
                "way": self.way,
                "mcpMethod": self.observation.mcp_method,
                "tool": self.observation.tool,
                "asked": self.observation.asked,
                "audited": [each.to_json() for each in self.audited],
            },
            "holds": self.comparison.holds,
            "standing": self.comparison.words,
            "question": str(decision.question) if decision is not None else None,
            "today": decision.to_json() if decision is not None else None,
            "explanation": explain(decision, False) if decision is not None else self.comparison.words,
        }


def explain_observation(observation: Observation, authority: Authority) -> Why:
    """Explain a logged decision. Raises QuestionError where it is about something that no manifest declares."""
    deciders = Deciders()
    decider, audited = deciders.decider_of(observation, authority), tuple(deciders.audited(observation, authority))
    if observation.level == "handshake":
        return Why(observation, decider, None, Comparison(None, _handshake(observation)))
    if observation.level == "connection" and gateway_of(observation.workload, authority.world) is not None:
        return Why(observation, decider, None, Comparison(None, _AT_GATEWAY))
    destinations = Destinations()
    destination = destinations.find(observation, authority)
    along = destination.points if destination is not None else None
    decision = _decide_today(observation, authority.enforced(_question_of(observation, authority), along))
    if observation.destination is not None and destination is None:
        comparison = Comparison(None, "changed since: the routes that led it there are others today")
        return Why(observation, decider, decision, comparison, audited=audited)
    attached = frozenset(
        policy_name(attachment.policy.ref)
        for point in destinations.points(observation, authority)
        for attachment in authority.programs.attached(point)
    ) | frozenset(map(policy_name, authority.programs.network_refs))
    comparison = _compare(observation, decider, decision, authority, attached)
    way = destination.title if destination is not None else None
    return Why(observation, decider, decision, comparison, way, audited)


def _question_of(observation: Observation, authority: Authority) -> Question:
    """Return the question that a proxy has answered. Headers are not in its log, so they are unknown."""
    address = observation.source.rpartition(":")[0].strip("[]") if observation.source else None
    return Question(
        caller_of(observation.peer, authority.settings),
        _asked_of(observation, authority),
        port=observation.port,
        method=observation.method,
        path=observation.path,
        host=observation.host,
        mcp_method=observation.mcp_method,
        tool=observation.tool,
        source_ip=address or None,
    )


def _asked_of(observation: Observation, authority: Authority) -> ends.Pod | ends.Gateway:
    """Return the workload or gateway of a proxy."""
    gateway = gateway_of(observation.workload, authority.world)
    if gateway is not None:
        return ends.Gateway(gateway.namespace, gateway.name)
    workload = authority.world.workloads.get(observation.workload)
    if workload is None:
        kind = "" if ":" in observation.workload else "the workload "
        raise QuestionError(
            NOT_DECLARED, f"no manifest declares {kind}{observation.workload}", "give the manifests of that mesh"
        )
    return ends.Pod(workload.namespace, workload.name)


def _handshake(observation: Observation) -> str:
    return (
        f"the TLS handshake failed before any policy was asked: {describe_handshake(observation.detail)}. "
        f"Who called is not known; it came from {observation.source or 'somewhere'}"
    )


def _decide_today(observation: Observation, decision: Decision) -> Decision:
    """Decide again with what the log tells.

    Of a connection that is what was decided before any request was read. The query of a path is not logged.
    """
    layers, request = decision.layers, decision.arrival.request
    if observation.level == "connection":
        layers = tuple(layer for layer in layers if is_network(layer))
    if "?" not in (observation.path or ""):
        logged = {name: value for name, value in request.values.items() if name.kind is not AttributeKind.QUERY}
        request = Request(logged, request.answers)
    if layers == decision.layers and request.values == decision.arrival.request.values:
        return decision
    return decision.narrowed(layers, request)


def _compare(
    observation: Observation, decider: DecidedBy, decision: Decision, authority: Authority, attached: frozenset[str]
) -> Comparison:
    if observation.who.startswith("proxy/"):
        return Comparison(None, "the proxy answered by itself, before any policy was asked or after all had allowed it")
    if observation.who in _BY_PROXY:
        return Comparison(None, _BY_PROXY[observation.who])
    verdict_name = _verdict_name(decision)
    logged_name = end_of(_NONE.sub("none", observation.who))[1]
    if observation.allowed == decision.allowed and logged_name in (verdict_name, UNREACHABLE, AUTHORIZER):
        return Comparison(True, "the manifests still say so")
    if observation.asked:
        return Comparison(None, "the authorizer decided, with what it knows and the log does not tell")
    unknown = sorted({str(a) for layer in decision.trace(nearest=0).layers for a, _ in layer.assumed})
    if unknown and not decision.allowed:
        return Comparison(None, f"it depends on what the log does not tell: {', '.join(unknown)}")
    changed = _describe_removed(observation, decider, authority, attached)
    if observation.allowed != decision.allowed:
        was, now = ("allowed", "denied") if observation.allowed else ("denied", "allowed")
        return Comparison(False, f"changed since: it was {was}, and is {now} by the manifests of today{changed}")
    return Comparison(True, f"changed since: the verdict is the same, but another rule decides today{changed}")


def _verdict_name(decision: Decision) -> str:
    """Return the name that a proxy would give to this verdict."""
    outcome = decision.outcome
    if outcome.rule is not None:
        return name_of(outcome.rule.origin, 0)
    if outcome.allowed:
        return UNOPPOSED_NAME
    return (outcome.stage or "encoded-slash") if outcome.is_unasked else "none"


def _describe_removed(
    observation: Observation, decider: DecidedBy, authority: Authority, attached: frozenset[str]
) -> str:
    """Describe what became of the policy that the line names; `attached` are those that are in force there today."""
    policy, rule = rule_of(observation.decision)
    if policy is None:
        return ""
    if policy not in {policy_name(other.ref) for other in authority.policies}:
        return f" ({decider.policy} is gone)"
    if policy not in attached:
        return f" ({decider.policy} does not target it any more)"
    return f" ({decider.policy} has no rule {rule} any more)" if decider.file is None else ""
