"""Rules that never decide, and redundant rules: examined chain by chain, reported once for each rule.

A rule is fine as soon as it is needed on one workload. Whether it is needed is found out with requests: one that the
rule matches is sent through the chain; who decides it instead becomes a suspect, and then a request is looked for that
the rule matches and the suspects do not. Where there is none, the suspects decide all that the rule could.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.dialects.linting import Fallback, Finding, codes
from eastgate.ir import Derived, PolicyRef, Rule, RuleKind
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reports.lint.chains import Analysis, ChainRule, rules_in
from eastgate.reports.lint.hooks import linting_of
from eastgate.reports.lint.inventory import Group, PolicyInventory

RuleKey: TypeAlias = tuple[PolicyRef | None, int, Derived | None]

_MOST_SUSPECTS = 8


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Why a rule is not needed in one chain: who decides instead, and whether before it or beside it."""

    rule: Rule
    others: tuple[Rule, ...]
    before: bool
    mutual: bool
    where: Group


def find_shadowed_rules(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report rules that are decided before, covered by another, or duplicated."""
    needed: set[RuleKey] = set()
    idle: dict[RuleKey, list[_Verdict]] = {}
    for group in inventory.groups:
        for layer in group.layers:
            for chain in layer.chains:
                _judge_chain(group, Analysis(layer, chain), needed, idle)
    for key, verdicts in idle.items():
        if key not in needed:
            yield from _findings(verdicts, inventory)


def _judge_chain(group: Group, analysis: Analysis, needed: set[RuleKey], idle: dict[RuleKey, list[_Verdict]]) -> None:
    for candidate in rules_in(analysis.chain):
        key = _key(candidate.rule)
        if not _is_authored(candidate.rule) or key in needed:
            continue
        verdict = _judge(candidate, analysis, group)
        if verdict is None:
            needed.add(key)
            idle.pop(key, None)
        elif verdict.others:
            idle.setdefault(key, []).append(verdict)


def _is_authored(rule: Rule) -> bool:
    """Return whether a rule is one of a policy, and not a default that follows from it."""
    return rule.origin.policy is not None and rule.origin.kind not in (RuleKind.FALLBACK, RuleKind.UNCOVERED)


def _key(rule: Rule) -> RuleKey:
    """Return what tells a rule apart, in whichever chain it is."""
    return rule.origin.policy, rule.origin.index, rule.origin.derived


def _judge(candidate: ChainRule, analysis: Analysis, group: Group) -> _Verdict | None:
    """Return why a rule is not needed; None where it is. For a rule that nothing can match, no other is the cause."""
    wanted = candidate.rule.when
    suspects: list[Rule] = []
    try:
        request = witness(wanted)
        if request is None:
            return _Verdict(candidate.rule, (), True, False, group)
        for _ in range(_MOST_SUSPECTS):
            caught = analysis.find_decider(candidate, request)
            if caught is None or caught in suspects:
                return None
            suspects.append(caught)
            if analysis.decides_before(candidate, caught):
                before = [suspect for suspect in suspects if analysis.decides_before(candidate, suspect)]
                if analysis.find_escape(candidate, before) is None:
                    return _Verdict(candidate.rule, _minimize(candidate, before, analysis), True, False, group)
            elif witness(wanted, [caught.when]) is None:
                mutual = witness(caught.when, [wanted]) is None
                return _Verdict(candidate.rule, (caught,), False, mutual, group)
            request = witness(wanted, [suspect.when for suspect in suspects])
            if request is None:
                return None  # only all of them together do it, and then each may be needed for the other
    except GaveUp:
        pass
    return None


def _minimize(candidate: ChainRule, rules: Sequence[Rule], analysis: Analysis) -> tuple[Rule, ...]:
    """Leave out the rules that are not needed to decide everything before."""
    kept = list(rules)
    for rule in rules:
        fewer = [other for other in kept if other is not rule]
        if fewer and analysis.find_escape(candidate, fewer) is None:
            kept = fewer
    return tuple(kept)


def _findings(verdicts: list[_Verdict], inventory: PolicyInventory) -> Iterator[Finding]:
    """Report a rule that is needed nowhere. It never matches only if others come first wherever it is."""
    never = all(verdict.before for verdict in verdicts)
    verdicts = [verdict for verdict in verdicts if verdict.before == never]
    rule = verdicts[0].rule
    others = sorted({_key(other): other for verdict in verdicts for other in verdict.others}.values(), key=_order)
    origins = [other.origin for other in others]
    names = " and ".join(map(str, origins))
    lines = ", ".join(origin.span.location for origin in origins if origin.span)
    where = f"see {lines}" if lines else ""
    refs = {str(origin.policy) for origin in origins if origin.policy is not None}
    subjects = (str(rule.origin.policy), *sorted(refs - {str(rule.origin.policy)}))
    if never:
        come = "comes" if len(others) == 1 else "come"
        message = f"{rule.origin} can never match: {names} {come} first for every request that it matches"
        yield Finding(codes.SHADOWED, message, rule.origin.span, f"{where}; remove it, or narrow the other", subjects)
    elif all(origin.kind is RuleKind.FALLBACK for origin in origins):
        fallback = _fallback(others[0], inventory)
        message = fallback.message(names, rule.origin.policy)
        yield Finding(fallback.code, message, rule.origin.span, f"{where}; {fallback.help}", subjects)
    elif any(verdict.mutual for verdict in verdicts):
        if _is_later(rule, others):
            message = f"{rule.origin} says the same as {names}"
            yield Finding(codes.DUPLICATE, message, rule.origin.span, f"{where}; remove one of the two", subjects)
    else:
        message = f"{rule.origin} is not needed: {names} {'covers' if len(others) == 1 else 'cover'} it"
        yield Finding(codes.REDUNDANT, message, rule.origin.span, f"{where}; remove it, or narrow the other", subjects)


def _fallback(rule: Rule, inventory: PolicyInventory) -> Fallback:
    """Return how its dialect reports rules that an object adds by itself."""
    policy = inventory.policy_of(rule)
    fallback = linting_of(policy).fallback if policy is not None else None
    if fallback is None:
        raise TypeError(f"{rule.origin} is of a dialect that does not know such rules")
    return fallback


def _is_later(rule: Rule, others: Sequence[Rule]) -> bool:
    """Return whether it comes after another, by file and line, and then by name: only the later of two is reported."""
    return any(_order(rule) > _order(other) for other in others)


def _order(rule: Rule) -> tuple[str, int, int, str]:
    span = rule.origin.span
    return (span.file, span.line, span.column, str(rule.origin)) if span else ("", 0, 0, str(rule.origin))
