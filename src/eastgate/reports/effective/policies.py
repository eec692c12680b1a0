"""The effective policy of a rule of a route, as a table: each rule with its source and the rules that shadow it."""

from __future__ import annotations

from eastgate.ir import EffectivePolicy, ShadowedRule, Shadowing
from eastgate.reports.columns import Line, Lines, columns
from eastgate.reports.effective.render import span_text

IN_FORCE = "in force"
_WHY = {
    Shadowing.ATOMIC_DEFAULTS: "its defaults are atomic",
    Shadowing.DEFAULT: "it is a default of the same name",
    Shadowing.ATOMIC_OVERRIDES: "the overrides there are atomic",
    Shadowing.OVERRIDE: "an override of the same name",
}
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
    """Name the rules that shadow a rule, and the reason."""
    return f"shadowed by {' and '.join(map(str, rule.by))}: {_WHY[rule.why]}"
