"""The effective policy of a rule of a route, in a table: each rule with its source, and what shadows it."""

from __future__ import annotations

from eastgate.ir import EffectivePolicy, ShadowedRule, Shadowing
from eastgate.reports.columns import Line, Lines, columns
from eastgate.reports.effective.render import span_text

__all__ = ["IN_FORCE", "effective_policy_lines", "shadowing_text"]

IN_FORCE = "in force"
_HEADERS = ("RULE", "POLICY", "SOURCE", "STATUS")


def effective_policy_lines(effective: EffectivePolicy, *, headers: bool = True) -> list[Line]:
    """Return the rules in force, then those that are shadowed, each with its policy and its line."""
    rows: list[list[Lines]] = [
        [[rule.key], [str(rule.origin.policy)], [span_text(rule.origin.span)], [IN_FORCE]] for rule in effective.rules
    ]
    rows += [
        [[rule.key], [str(rule.origin.policy)], [span_text(rule.origin.span)], [shadowing_text(rule)]]
        for rule in effective.shadowed
    ]
    return columns(_HEADERS if headers else None, rows)


def shadowing_text(rule: ShadowedRule) -> str:
    """Say why a rule is not in force, and whose rules are instead."""
    by = " and ".join(map(str, rule.by))
    match rule.why:
        case Shadowing.ATOMIC_DEFAULTS:
            has = "have rules of their own" if len(rule.by) > 1 else "has rules of its own"
            return f"shadowed: its defaults are atomic, and {by} {has}"
        case Shadowing.DEFAULT:
            return f"shadowed: a default, and {by} has a rule of this name"
        case Shadowing.ATOMIC_OVERRIDES:
            return f"shadowed: the overrides of {by} are atomic"
        case Shadowing.OVERRIDE:
            return f"shadowed: {by} overrides it"
