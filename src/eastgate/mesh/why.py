"""Why a proxy decided as its log says, by the manifests as they are today; and whether they still say so."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from eastgate.authority import Authority
from eastgate.decisions import Decision
from eastgate.mesh.deciders import Decider, Deciders, handshake_problem
from eastgate.mesh.loglines import question_of
from eastgate.mesh.records import UNREACHABLE, Observed, rule_of
from eastgate.policy import Request
from eastgate.policy.attributes import query
from eastgate.printable import printable
from eastgate.targets.envoy.decisions import OPEN, name_of, policy_name
from eastgate.targets.envoy.flow import is_network

__all__ = ["Explain", "Standing", "Why", "why"]

Explain = Callable[[Decision, bool], str]
"""An explanation of a decision as text; in color where the second is true."""

_GREEN, _RED, _YELLOW, _RESET = "\033[1;32m", "\033[1;31m", "\033[1;33m", "\033[0m"
_QUERY = query("").name
_NONE = re.compile(r"none-of-\d+")


@dataclass(frozen=True, slots=True)
class Standing:
    """How a line stands to the manifests of today. `holds` is None where the log does not tell enough to say."""

    holds: bool | None
    words: str


@dataclass(frozen=True, slots=True)
class Why:
    """A line, explained. A handshake that failed has no decision: no policy was asked."""

    seen: Observed
    decider: Decider
    decision: Decision | None
    standing: Standing

    def text(self, explain: Explain, *, color: bool = False) -> str:
        """What the line says, how that stands today, and the explanation."""
        seen, place = self.seen, f"  ({self.decider.place})" if self.decider.place else ""
        paint = _GREEN if seen.allowed else _RED
        verdict = "ALLOWED" if seen.allowed else "DENIED"
        head = f"{paint}{verdict}{_RESET}" if color else verdict
        at = f" at {seen.time}" if seen.time else ""
        words = printable(self.standing.words)
        lines = [f"the log: {head}" + printable(f"{at} by {seen.workload}:{seen.port}: {self.decider.text}{place}")]
        if self.decision is None:
            return "\n".join([*lines, f"  {words}"])
        shown = f"{_YELLOW}{words}{_RESET}" if color and words.startswith("changed") else words
        return "\n".join([*lines, f"  today: {shown}", "", explain(self.decision, color)])

    def to_json(self, explain: Explain) -> dict[str, object]:
        """As plain data."""
        decision = self.decision
        return {
            "line": {
                "level": self.seen.level,
                "workload": self.seen.workload,
                "port": self.seen.port,
                "verdict": "allow" if self.seen.allowed else "deny",
                "decision": self.seen.decision,
                "policy": self.decider.policy,
                "rule": self.decider.rule,
                "reason": self.decider.text,
                "file": self.decider.file,
                "line": self.decider.line,
            },
            "holds": self.standing.holds,
            "standing": self.standing.words,
            "question": str(decision.question) if decision is not None else None,
            "today": decision.to_json() if decision is not None else None,
            "explanation": explain(decision, False) if decision is not None else self.standing.words,
        }


def why(seen: Observed, authority: Authority) -> Why:
    """Explain a line. Raises QuestionError where it is about something that no manifest declares."""
    decider = Deciders().of(seen, authority)
    if seen.level == "handshake":
        return Why(seen, decider, None, Standing(None, _handshake(seen)))
    decision = _today(seen, authority.enforced(question_of(seen, authority)))
    return Why(seen, decider, decision, _standing(seen, decider, decision, authority))


def _handshake(seen: Observed) -> str:
    return (
        f"the TLS handshake failed before any policy was asked: {handshake_problem(seen.detail)}. "
        f"Who called is not known; it came from {seen.source or 'somewhere'}"
    )


def _today(seen: Observed, decision: Decision) -> Decision:
    """The decision that a line tells of, with what it tells.

    Of a connection that is what was decided before any request was read. The query of a path is not logged.
    """
    layers, request = decision.layers, decision.arrival.request
    if seen.level == "connection":
        layers = tuple(layer for layer in layers if is_network(layer))
    if "?" not in (seen.path or ""):
        known = {attribute: value for attribute, value in request.values.items() if attribute.name != _QUERY}
        request = Request(known, request.answers)
    if layers == decision.layers and request.values == decision.arrival.request.values:
        return decision
    return decision.narrowed(layers, request)


def _standing(seen: Observed, decider: Decider, decision: Decision, authority: Authority) -> Standing:
    if seen.who.startswith("proxy/"):
        return Standing(None, "the proxy answered by itself, before any policy was asked or after all had allowed it")
    if seen.who == "cannot-be-enforced":
        return Standing(None, "the port was closed, because a policy there cannot be enforced as it is written")
    who = _who(decision)
    said = _NONE.sub("none", seen.who)
    if seen.allowed == decision.allowed and said in (who, UNREACHABLE):
        return Standing(True, "the manifests still say so")
    unknown = sorted({str(a) for layer in decision.trace(nearest=0).layers for a, _ in layer.assumed})
    if unknown and not decision.allowed:
        return Standing(None, f"it depends on what the log does not tell: {', '.join(unknown)}")
    changed = _gone(seen, decider, authority)
    if seen.allowed != decision.allowed:
        was, now = ("allowed", "denied") if seen.allowed else ("denied", "allowed")
        return Standing(False, f"changed since: it was {was}, and is {now} by the manifests of today{changed}")
    return Standing(True, f"changed since: the verdict is the same, but another rule decides today{changed}")


def _who(decision: Decision) -> str:
    """The name that a proxy would give to this verdict."""
    outcome = decision.outcome
    if outcome.rule is not None:
        return name_of(outcome.rule.origin, 0)
    if outcome.allowed:
        return OPEN
    return (outcome.stage or "encoded-slash") if outcome.is_unasked else "none"


def _gone(seen: Observed, decider: Decider, authority: Authority) -> str:
    """What became of the policy that the line names."""
    policy, rule = rule_of(seen.decision)
    if policy is None:
        return ""
    if policy not in {policy_name(one.ref) for one in authority.policies}:
        return f" ({decider.policy} is gone)"
    if policy not in {policy_name(one.policy.ref) for one in authority.engine.attached(seen.workload)}:
        return f" ({decider.policy} does not target it any more)"
    return f" ({decider.policy} has no rule {rule} any more)" if decider.file is None else ""
