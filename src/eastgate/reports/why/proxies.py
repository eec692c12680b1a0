"""Explains a decision in the log of Eastgate's own proxies by the present manifests."""

from __future__ import annotations

from eastgate.authority.auditing import Audited
from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import NOT_DECLARED, Question, QuestionError, ends
from eastgate.basics.regexes import regex
from eastgate.control.access_log import AUTHORIZER, NO_ANSWER, UNREACHABLE, Observation, rule_of
from eastgate.control.deciders import DecidedBy, Deciders, caller_of, describe_handshake
from eastgate.control.destinations import Destinations
from eastgate.control.gateway_nodes import gateway_of
from eastgate.envoy.plan.decisions import UNOPPOSED_NAME, end_of, name_of, policy_name
from eastgate.envoy.plan.gateway import NO_SESSION, NO_SUCH_SESSION, UNREAD_MESSAGE
from eastgate.ir import Request, is_network
from eastgate.ir.attributes import AttributeKind
from eastgate.reports.why.ends import Comparison, Explanation, assumed_in, compare, not_asked

_NONE = regex(r"(?:(?:in|e)gress/)?none-of-\d+(?:/\S+)?")
_AT_GATEWAY = "gateways decide requests, not connections: look for the lines of the requests on it"
_BY_PROXY = {
    "cannot-be-enforced": "the port was closed, because a policy there cannot be enforced as it is written",
    UNREAD_MESSAGE: "the gateway refuses messages that it cannot read for certain, whatever the policies say",
    NO_SESSION: "the gateway gives no stream without a session, whatever the policies say",
    NO_SUCH_SESSION: "the gateway refuses access to a session of another caller, whatever the policies say",
    "unclear-route": "the gateway refuses requests that it cannot route for certain, whatever the policies say",
    "unknown-destination": "the routes were changing",
    NO_ANSWER: "the authorizer did not answer, so the request was refused",
}


def explain_observation(observation: Observation, authority: Authority) -> Explanation:
    """Explain a logged decision. Raises QuestionError if it names an object that no manifest declares."""
    deciders = Deciders()
    decider, audited = deciders.decider_of(observation, authority), tuple(deciders.audited(observation, authority))
    if observation.level == "handshake":
        return _explanation(observation, decider, not_asked(_handshake(observation)))
    if observation.level == "connection" and gateway_of(observation.workload, authority.world) is not None:
        return _explanation(observation, decider, not_asked(_AT_GATEWAY))
    destinations = Destinations()
    destination = destinations.find(observation, authority)
    along = destination.points if destination is not None else None
    decision = _decide_today(observation, authority.enforced(_question_of(observation, authority), along))
    if observation.destination is not None and destination is None:
        comparison = Comparison(None, "changed since: today's routes do not lead the request there")
        return _explanation(observation, decider, comparison, decision, audited=audited)
    attached = frozenset(
        policy_name(attachment.policy.ref)
        for point in destinations.points(observation, authority)
        for attachment in programs_of(authority).attached(point)
    ) | frozenset(map(policy_name, programs_of(authority).network_refs))
    comparison = _compare(observation, decider, decision, authority, attached)
    way = destination.title if destination is not None else None
    return _explanation(observation, decider, comparison, decision, way, audited)


def _explanation(
    observation: Observation,
    decider: DecidedBy,
    comparison: Comparison,
    decision: Decision | None = None,
    way: str | None = None,
    audited: tuple[Audited, ...] = (),
) -> Explanation:
    """`way`: the route and the backend that the gateway chose.

    `audited`: the effects of audited policies in the line.
    """
    position = f"  ({decider.position})" if decider.position else ""
    at = f" at {observation.time}" if observation.time else ""
    line = {
        "level": observation.level,
        "workload": observation.workload,
        "port": observation.port,
        "verdict": "allow" if observation.allowed else "deny",
        "decision": observation.decision,
        "policy": decider.policy,
        "rule": decider.rule,
        "reason": decider.text,
        "file": decider.file,
        "line": decider.line,
        "destination": observation.destination,
        "way": way,
        "mcpMethod": observation.mcp_method,
        "tool": observation.tool,
        "asked": observation.asked,
        "audited": [each.to_json() for each in audited],
    }
    notes = (*(each.line for each in audited), *(() if way is None else (f"way:   {way}",)))
    head = f"{at} by {observation.workload}:{observation.port}: {decider.text}{position}"
    return Explanation(observation.allowed, head, line, comparison, decision, notes)


def _question_of(observation: Observation, authority: Authority) -> Question:
    """Return the question that a proxy answered. Headers are unknown, because they are not in its log."""
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
        f"The caller is not known; the connection came from {observation.source or 'somewhere'}"
    )


def _decide_today(observation: Observation, decision: Decision) -> Decision:
    """Decide again with the data of the log.

    For a connection, decide as before any request was read. The query of a path is not in the log.
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
    logged_name = end_of(_NONE.sub("none", observation.who))[1]
    is_same = logged_name in (_verdict_name(decision), UNREACHABLE, AUTHORIZER)
    if observation.asked and not (is_same and observation.allowed == decision.allowed):
        return Comparison(None, "the authorizer decided, with data that is not in the log")
    gone = _describe_removed(observation, decider, authority, attached)
    return compare(observation.allowed, decision, is_same=is_same, unknown=assumed_in(decision), gone=gone)


def _verdict_name(decision: Decision) -> str:
    """Return the name of this verdict in the logs of proxies."""
    outcome = decision.outcome
    if outcome.rule is not None:
        return name_of(outcome.rule.origin, 0)
    if outcome.allowed:
        return UNOPPOSED_NAME
    return (outcome.stage or "encoded-slash") if outcome.is_unasked else "none"


def _describe_removed(
    observation: Observation, decider: DecidedBy, authority: Authority, attached: frozenset[str]
) -> str:
    """Describe the removal of the policy that the line names; `attached` are the policies that are in force
    there now.
    """
    policy, rule = rule_of(observation.decision)
    if policy is None:
        return ""
    if policy not in {policy_name(other.ref) for other in authority.policies}:
        return f" ({decider.policy} is gone)"
    if policy not in attached:
        return f" ({decider.policy} does not target it any more)"
    return f" ({decider.policy} has no rule {rule} any more)" if decider.file is None else ""
