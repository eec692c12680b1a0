"""Explains a decision in the log of other proxies, which a dialect has read, by the present manifests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question
from eastgate.dialects.logs import LoggedDecision
from eastgate.ir import AllowAny, Observe, Origin, Rule, rules_of
from eastgate.ir.symbolic.trees import truth
from eastgate.reports.why.ends import (
    Comparison,
    Explanation,
    GivenEnds,
    LocatedDestination,
    compare,
    find_called,
    find_caller,
    require_called,
)

_MAX_NEAREST_RULES = 1_000_000  # more than all rules of a layer


def explain_logged(logged: LoggedDecision, authority: Authority, given: GivenEnds) -> Explanation:
    """Explain a logged decision. Raises QuestionError if its destination is unknown."""
    written = _origins_named(logged, authority)
    find = require_called if logged.cause.policy is None else find_called
    called = find(logged, given, authority.world) if logged.placements else None
    if called is None:
        comparison = Comparison(None, _describe_named(logged, authority, written))
        return _explanation(logged, None, comparison, origins=written)
    decision = _decide(logged, called, authority, given)
    if not decision.layers:
        return _explanation(logged, called, Comparison(None, logged.without_layers), origins=written)
    if logged.cause.hidden:
        return _explain_hidden(logged, called, decision)
    comparison = _compare(logged, decision, authority, written)
    origins = tuple(each for each in written or _possible(logged, decision) if each.span != decision.span)
    return _explanation(logged, called, comparison, decision, origins)


def _explanation(
    logged: LoggedDecision,
    called: LocatedDestination | None,
    comparison: Comparison,
    decision: Decision | None = None,
    origins: tuple[Origin, ...] = (),
) -> Explanation:
    cause = logged.cause
    at = f" at {logged.time}" if logged.time else ""
    where = f" for {called.to}" if called is not None else ""
    line = {
        "proxy": logged.proxy,
        "time": logged.time,
        "verdict": "allow" if cause.allowed else "deny",
        "policy": str(cause.policy) if cause.policy is not None else None,
        "rule": cause.rule,
        "reason": cause.words,
        "origins": [_json(origin) for origin in origins],
        **logged.fields,
    }
    head = f"{at} by {logged.proxy}{where}: {cause.words}"
    is_named = cause.policy is not None
    return Explanation(cause.allowed, head, line, comparison, decision, origins=origins, is_named=is_named)


def _json(origin: Origin) -> dict[str, object]:
    span = origin.span
    where = {"file": span.file, "line": span.line} if span is not None else {"file": None, "line": None}
    return {"policy": str(origin.policy), "rule": origin.index, **where}


def _explain_hidden(logged: LoggedDecision, called: LocatedDestination, decision: Decision) -> Explanation:
    """Explain a refusal for a reason that is not in the line: by the policies that could have refused."""
    origins = tuple(_possible(logged, decision))
    if origins:
        comparison = Comparison(None, "the log does not say what the proxy refused")
        return _explanation(logged, called, comparison, origins=origins)
    kinds = " or ".join(sorted(logged.cause.kinds))
    return _explanation(logged, called, Comparison(False, f"changed since: no {kinds} is in force there"))


def _decide(logged: LoggedDecision, called: LocatedDestination, authority: Authority, given: GivenEnds) -> Decision:
    """Ask the manifests the same question, limited to the layers of the proxy that wrote the line."""
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
    if authorizers:  # another denial came after the authorizers had allowed
        answers = dict.fromkeys(sorted(authorizers), logged.cause.external or "allow")
        decision = authority.enforced(replace(question, external_auth=answers))
    layers = tuple(layer for layer in decision.layers if layer.at in logged.placements)
    return decision if layers == decision.layers else decision.narrowed(layers, decision.arrival.request)


# The meaning of the line


def _origins_named(logged: LoggedDecision, authority: Authority) -> tuple[Origin, ...]:
    """Return the origins of the rule that a line names, or of all rules if the line names only the policy."""
    cause = logged.cause
    policy = next((policy for policy in authority.policies if policy.ref == cause.policy), None)
    if policy is None:
        return ()
    rules = tuple(origin for origin in policy.origins if cause.rule in (None, origin.index))
    return rules or ((Origin(policy.ref, 0, policy.span),) if cause.rule is None else ())


def _possible(logged: LoggedDecision, decision: Decision) -> Iterator[Origin]:
    """Yield the texts of kinds of policies that may have decided, if the manifests have another decider."""
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
        return "the line does not name the destination, or no manifest declares it; this is the rule that it names"
    if any(policy.ref == cause.policy for policy in authority.policies):
        return f"{cause.policy} has no rule {cause.rule} any more"
    return f"no manifest has {cause.policy}"


def _compare(
    logged: LoggedDecision, decision: Decision, authority: Authority, written: tuple[Origin, ...]
) -> Comparison:
    cause = logged.cause
    gone = "" if written or cause.policy is None else f" ({_describe_named(logged, authority, written)})"
    unknown = {*map(str, decision.unknown), *_unknown_in_rules(decision)}
    return compare(cause.allowed, decision, is_same=_is_same(logged, decision), unknown=unknown, gone=gone)


def _is_same(logged: LoggedDecision, decision: Decision) -> bool:
    """Return whether the rule that the log names decides now. If several rules deny, a proxy may name any of them."""
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
    """Return deciding attributes that the line does not have: the only ones that a rule missed which would
    have allowed.
    """
    if decision.allowed:
        return set()
    request = decision.arrival.request
    misses = (miss for layer in decision.trace(nearest=_MAX_NEAREST_RULES).layers for miss in layer.nearest)
    may_match = (miss.missed for miss in misses if truth(miss.rule.when, request) is None)
    return {str(atom.attribute) for atoms in may_match for atom in atoms}
