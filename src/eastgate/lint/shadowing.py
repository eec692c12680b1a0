"""Rules for which no request is left, and rules that could go: looked at chain by chain, told once for each rule.

A rule is fine as soon as it is needed on one workload. Whether it is needed is found out with requests: one that the
rule matches is sent through the chain; who decides it instead becomes a suspect, and then a request is looked for that
the rule matches and the suspects do not. Where there is none, the suspects decide all that the rule could.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from eastgate.dialects.linting import Fallback, Finding, codes
from eastgate.lint.chains import Analysis, Place, places
from eastgate.lint.hooks import linting_of
from eastgate.lint.inventory import Group, Inventory
from eastgate.policy import Derived, PolicyRef, Rule, RuleKind
from eastgate.symbolic.witnesses import GaveUp, witness

__all__ = ["shadowed_rules"]

RuleKey: TypeAlias = tuple[PolicyRef, int, Derived | None]

_MOST_SUSPECTS = 8


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Why a rule is not needed in one chain: who decides instead, and whether before it or beside it."""

    rule: Rule
    others: tuple[Rule, ...]
    before: bool
    mutual: bool
    where: Group


def shadowed_rules(inventory: Inventory) -> Iterator[Finding]:
    """Rules that are decided before, covered by another, or written twice."""
    needed: set[RuleKey] = set()
    idle: dict[RuleKey, list[_Verdict]] = {}
    for group in inventory.groups:
        for layer in group.layers:
            for chain in layer.chains:
                _chain(group, Analysis(layer, chain), needed, idle)
    for key, verdicts in idle.items():
        if key not in needed:
            yield from _findings(verdicts, inventory)


def _chain(group: Group, analysis: Analysis, needed: set[RuleKey], idle: dict[RuleKey, list[_Verdict]]) -> None:
    for place in places(analysis.chain):
        key = key_of(place.rule)
        if key is None or key in needed:
            continue
        verdict = _judged(place, analysis, group)
        if verdict is None:
            needed.add(key)
            idle.pop(key, None)
        elif verdict.others:
            idle.setdefault(key, []).append(verdict)


def key_of(rule: Rule) -> RuleKey | None:
    """What tells a rule apart; None of one that nobody wrote as a rule."""
    origin = rule.origin
    if origin.policy is None or origin.kind in (RuleKind.FALLBACK, RuleKind.UNCOVERED):
        return None
    return origin.policy, origin.index, origin.derived


def _judged(place: Place, analysis: Analysis, group: Group) -> _Verdict | None:
    """Why a rule is not needed; None where it is. A rule that nothing can match has nobody to blame."""
    wanted = place.rule.when
    suspects: list[Rule] = []
    try:
        found = witness(wanted)
        if found is None:
            return _Verdict(place.rule, (), True, False, group)
        for _ in range(_MOST_SUSPECTS):
            caught = analysis.caught(place, found)
            if caught is None or caught in suspects:
                return None
            suspects.append(caught)
            if analysis.is_before(place, caught):
                before = [one for one in suspects if analysis.is_before(place, one)]
                if analysis.escapes(place, before) is None:
                    return _Verdict(place.rule, _least(place, before, analysis), True, False, group)
            elif witness(wanted, [caught.when]) is None:
                mutual = witness(caught.when, [wanted]) is None
                return _Verdict(place.rule, (caught,), False, mutual, group)
            found = witness(wanted, [one.when for one in suspects])
            if found is None:
                return None  # only all of them together do it, and then each may be needed for the other
    except GaveUp:
        pass
    return None


def _least(place: Place, rules: Sequence[Rule], analysis: Analysis) -> tuple[Rule, ...]:
    """Without those that are not needed to decide everything before."""
    kept = list(rules)
    for rule in rules:
        fewer = [one for one in kept if one is not rule]
        if fewer and analysis.escapes(place, fewer) is None:
            kept = fewer
    return tuple(kept)


def _findings(verdicts: list[_Verdict], inventory: Inventory) -> Iterator[Finding]:
    """Tell of a rule that is needed nowhere. It never matches only if others come first wherever it is."""
    never = all(verdict.before for verdict in verdicts)
    verdicts = [verdict for verdict in verdicts if verdict.before == never]
    rule = verdicts[0].rule
    others = sorted({str(one.origin): one for v in verdicts for one in v.others}.values(), key=_order)
    names = " and ".join(str(one.origin) for one in others)
    places = ", ".join(f"{one.origin.span.file}:{one.origin.span.line}" for one in others if one.origin.span)
    where = f"see {places}" if places else ""
    refs = {str(one.origin.policy) for one in others if one.origin.policy is not None}
    subjects = (str(rule.origin.policy), *sorted(refs - {str(rule.origin.policy)}))
    if never:
        come = "comes" if len(others) == 1 else "come"
        message = f"{rule.origin} can never match: {names} {come} first for every request that it matches"
        yield Finding(codes.SHADOWED, message, rule.origin.span, f"{where}; remove it, or narrow the other", subjects)
    elif all(one.origin.kind is RuleKind.FALLBACK for one in others):
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


def _fallback(rule: Rule, inventory: Inventory) -> Fallback:
    """Return how its dialect speaks of what an object lets in by itself."""
    policy = inventory.policy_of(rule)
    fallback = linting_of(policy).fallback if policy is not None else None
    if fallback is None:
        raise TypeError(f"{rule.origin} is of a dialect that does not know such rules")
    return fallback


def _is_later(rule: Rule, others: Sequence[Rule]) -> bool:
    """Of two that say the same only the later one is told of, by file and line, and then by name."""

    return any(_order(rule) > _order(one) for one in others)


def _order(rule: Rule) -> tuple[str, int, int, str]:
    span = rule.origin.span
    return (span.file, span.line, span.column, str(rule.origin)) if span else ("", 0, 0, str(rule.origin))
