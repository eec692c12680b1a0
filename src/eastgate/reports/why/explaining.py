"""Explains a logged decision: the policy and the line that decided, what the engine says of the same question, and
whether the two agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question
from eastgate.basics.diagnostics import snippet
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.dialects.logs import LoggedDecision
from eastgate.ir import AllowAny, Observe, Origin, Rule, rules_of
from eastgate.ir.symbolic.truth import truth
from eastgate.reports.why.ends import GivenEnds, LocatedDestination, find_called, find_caller, require_called

Explain = Callable[[Decision, bool], str]
"""An explanation of a decision as text; in color where the second is true."""

_GREEN, _RED, _YELLOW, _RESET = "\033[1;32m", "\033[1;31m", "\033[1;33m", "\033[0m"

_ALL = 1_000_000  # rules of a layer


@dataclass(frozen=True, slots=True)
class LoggedExplanation:
    """An explained decision of a log. `holds` is None where the line tells too little to compare.

    Without a `decision`, the manifests cannot be asked the same question. `origins` are the texts that decided by the
    log, as far as the decision does not show them itself.
    """

    logged: LoggedDecision
    called: LocatedDestination | None
    decision: Decision | None
    holds: bool | None
    words: str
    origins: tuple[Origin, ...] = ()

    def text(self, explain: Explain, *, color: bool = False) -> str:
        """Render the logged decision, how it compares with today, and the explanation."""
        return "\n".join(self._lines(explain, color))

    def _lines(self, explain: Explain, color: bool) -> Iterator[str]:
        cause = self.logged.cause
        tone, verdict = (_GREEN, "ALLOWED") if cause.allowed else (_RED, "DENIED")
        head = f"{tone}{verdict}{_RESET}" if color else verdict
        at = f" at {self.logged.time}" if self.logged.time else ""
        where = f" for {self.called.to}" if self.called is not None else ""
        yield f"the log: {head}" + printable(f"{at} by {self.logged.proxy}{where}: {cause.words}")
        words = printable(self.words)
        yield f"  today: {_YELLOW}{words}{_RESET}" if color and self.holds is False else f"  today: {words}"
        if self.decision is not None:
            yield ""
            yield explain(self.decision, color)
        for origin in self.origins:
            yield ""
            yield printable(f"the log {'names' if self.logged.cause.policy else 'may mean'} {origin}:")
            yield f"  --> {origin.span}"
            yield from _shown(origin, color)

    def to_json(self, explain: Explain) -> dict[str, object]:
        """Return the same as plain data."""
        logged, decision = self.logged, self.decision
        cause = logged.cause
        return {
            "line": {
                "proxy": logged.proxy,
                "time": logged.time,
                "verdict": "allow" if cause.allowed else "deny",
                "policy": str(cause.policy) if cause.policy is not None else None,
                "rule": cause.rule,
                "reason": cause.words,
                "origins": [_json(origin) for origin in self.origins],
                **logged.fields,
            },
            "holds": self.holds,
            "standing": self.words,
            "question": str(decision.question) if decision is not None else None,
            "today": decision.to_json() if decision is not None else None,
            "explanation": explain(decision, False) if decision is not None else self.words,
        }


def _json(origin: Origin) -> dict[str, object]:
    span = origin.span
    where = {"file": span.file, "line": span.line} if span is not None else {"file": None, "line": None}
    return {"policy": str(origin.policy), "rule": origin.index, **where}


def _shown(origin: Origin, color: bool) -> Iterator[str]:
    """Yield the text of a rule, part by part."""
    parts = dict.fromkeys((part, str(attribute)) for attribute, part in origin.parts)
    for part, note in parts:
        yield from snippet(part, note=note, color=color)
    if not parts and origin.span is not None:
        yield from snippet(origin.span, color=color)


def explain_logged(logged: LoggedDecision, authority: Authority, given: GivenEnds) -> LoggedExplanation:
    """Explain a logged decision. Raises QuestionError where nobody knows what it is about."""
    written = _origins_named(logged, authority)
    find = require_called if logged.cause.policy is None else find_called
    called = find(logged, given, authority.world) if logged.placements else None
    if called is None:
        return LoggedExplanation(logged, None, None, None, _describe_named(logged, authority, written), written)
    decision = _decide(logged, called, authority, given)
    if not decision.layers:
        return LoggedExplanation(logged, called, None, None, logged.without_layers, written)
    if logged.cause.hidden:
        return _explain_hidden(logged, called, decision)
    holds, words = _compare(logged, decision, authority, written)
    means = written or tuple(_possible(logged, decision))
    shown = decision.span
    return LoggedExplanation(
        logged, called, decision, holds, words, tuple(each for each in means if each.span != shown)
    )


def _explain_hidden(logged: LoggedDecision, called: LocatedDestination, decision: Decision) -> LoggedExplanation:
    """Explain what was refused for something that no line has: by the policies that look at it."""
    origins = tuple(_possible(logged, decision))
    if origins:
        return LoggedExplanation(logged, called, None, None, "the log does not have what was refused", origins)
    kinds = " or ".join(sorted(logged.cause.kinds))
    return LoggedExplanation(logged, called, None, False, f"changed since: no {kinds} is in force there")


def _decide(logged: LoggedDecision, called: LocatedDestination, authority: Authority, given: GivenEnds) -> Decision:
    """Ask the same question of the manifests, and of no layers but those of the proxy that has logged it."""
    caller = find_caller(logged, given, authority.world, authority.settings)
    question = Question(
        caller.source,
        called.to,
        port=called.port,
        method=logged.method,
        path=logged.path,
        host=logged.host,
        sni=logged.sni,
        source_ip=caller.address,
        http_protocol=logged.protocol if logged.method is not None else None,
        forwarded_for=logged.forwarded_for,
        plaintext=caller.plaintext,
    )
    decision = authority.enforced(question)
    authorizers = {ask.authorizer for layer in decision.layers for ask in layer.asks}
    if authorizers:  # a denial of somebody else came after they had allowed
        answers = dict.fromkeys(sorted(authorizers), logged.cause.external or "allow")
        decision = authority.enforced(replace(question, external_auth=answers))
    layers = tuple(layer for layer in decision.layers if layer.at in logged.placements)
    return decision if layers == decision.layers else decision.narrowed(layers, decision.arrival.request)


# What the log means


def _origins_named(logged: LoggedDecision, authority: Authority) -> tuple[Origin, ...]:
    """Return the origins of the rule that a line names; of all rules where it names the policy alone."""
    cause = logged.cause
    policy = next((policy for policy in authority.policies if policy.ref == cause.policy), None)
    if policy is None:
        return ()
    rules = tuple(origin for origin in policy.origins if cause.rule in (None, origin.index))
    return rules or ((Origin(policy.ref, 0, policy.span),) if cause.rule is None else ())


def _possible(logged: LoggedDecision, decision: Decision) -> Iterator[Origin]:
    """Yield the texts of the kinds that may have decided, where the manifests decide by something else."""
    deciding = decision.outcome.rule.origin.policy if decision.outcome.rule is not None else None
    if deciding is not None and deciding.kind in logged.cause.kinds:
        return
    seen = set()
    for rule in _denying_rules(decision):
        policy = rule.origin.policy
        if rule.origin.derived is not None and policy is not None and policy.kind in logged.cause.kinds:
            if rule.origin.span not in seen:
                yield rule.origin
            seen.add(rule.origin.span)


def _denying_rules(decision: Decision) -> Iterator[Rule]:
    for layer in decision.layers:
        for chain in layer.chains:
            for stage in chain.stages:
                if not isinstance(stage, AllowAny | Observe):
                    yield from rules_of(stage)


# The comparison


def _describe_named(logged: LoggedDecision, authority: Authority, written: tuple[Origin, ...]) -> str:
    cause = logged.cause
    if written:
        return "the line does not say what was called, or no manifest declares it; this is the rule that it names"
    if any(policy.ref == cause.policy for policy in authority.policies):
        return f"{cause.policy} has no rule {cause.rule} any more"
    return f"no manifest has {cause.policy}"


def _compare(
    logged: LoggedDecision, decision: Decision, authority: Authority, written: tuple[Origin, ...]
) -> tuple[bool | None, str]:
    """Return whether the manifests decide like the log, and in words how they compare."""
    cause = logged.cause
    if cause.allowed == decision.allowed and _is_same(logged, decision):
        return True, "the manifests still say so"
    if unknown := sorted({*map(str, decision.unknown), *_unknown_in_rules(decision)}):
        return None, f"it depends on what the log does not tell: {', '.join(unknown)}"
    gone = "" if written or cause.policy is None else f" ({_describe_named(logged, authority, written)})"
    if cause.allowed != decision.allowed:
        was, now = ("allowed", "denied") if cause.allowed else ("denied", "allowed")
        return False, f"changed since: it was {was}, and is {now} by the manifests of today{gone}"
    return True, f"changed since: the verdict is the same, but another rule decides today{gone}"


def _is_same(logged: LoggedDecision, decision: Decision) -> bool:
    """Return whether what the log names decides today. Of several rules that deny, a proxy names any."""
    cause, rule = logged.cause, decision.outcome.rule
    if cause.allowed:
        return True
    if cause.policy is not None:
        denying = (each for each in _denying_rules(decision) if each.origin.policy == cause.policy)
        named = (each for each in denying if cause.rule in (None, each.origin.index))
        return any(each is rule or truth(each.when, decision.arrival.request) is True for each in named)
    if rule is None:
        return cause.unmatched and not _unknown_in_rules(decision)
    policy = rule.origin.policy
    is_of_kind = policy is not None and policy.kind in cause.kinds
    return is_of_kind and (cause.external is not None or rule.origin.derived is not None)


def _unknown_in_rules(decision: Decision) -> set[str]:
    """Return what the line leaves out and what decides: a rule that would have allowed missed nothing else."""
    if decision.allowed:
        return set()
    request = decision.arrival.request
    misses = (miss for layer in decision.trace(nearest=_ALL).layers for miss in layer.nearest)
    may_match = (miss.missed for miss in misses if truth(miss.rule.when, request) is None)
    return {str(atom.attribute) for atoms in may_match for atom in atoms}
