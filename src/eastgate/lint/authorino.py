"""Where Authorino would skip what is denied here: conditions of an auth scheme that may err."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.authconfig.conditions import regex_problem
from eastgate.authconfig.model import All, AnyOf, Condition, Operator, Pattern, Predicate, Scheme
from eastgate.lint import codes
from eastgate.lint.ground import Ground, KuadrantPolicy, subject_of
from eastgate.lint.model import Finding

__all__ = ["erring_conditions"]


def erring_conditions(ground: Ground) -> Iterator[Finding]:
    """Every `when` that may err: the setting authorinoCompat decides what becomes of it."""
    compat = ground.settings.authorino_compat
    for policy in ground.policies:
        if not isinstance(policy, KuadrantPolicy) or policy.audit:
            continue
        for scheme in policy.schemes:
            for condition in _guards(scheme):
                why = _may_err(condition)
                if why is not None:
                    yield _told(policy, condition, why, compat=compat)


def _told(policy: KuadrantPolicy, condition: Condition, why: str, *, compat: bool) -> Finding:
    now, then = ("skips", "denies") if compat else ("denies", "skips")
    other = str(not compat).lower()
    message = f"{why}: that {now} what it guards, and {then} it with authorinoCompat: {other}"
    span = getattr(condition, "span", None) or policy.target_span
    help_ = "write a condition that cannot fail: test that a value exists before it is used"
    return Finding(codes.READING_AUTHORINO_COMPAT, message, span, help_, (str(policy.ref), subject_of(policy.target)))


def _guards(scheme: Scheme) -> Iterator[Condition]:
    guards = [
        scheme.when,
        *(one.when for one in scheme.identities),
        *(one.when for one in scheme.metadata),
        *(one.when for one in scheme.authorizations),
        *(one.when for one in scheme.responses),
    ]
    for when in guards:
        if when is not None:
            yield from _leaves(when)


def _leaves(condition: Condition) -> Iterator[Condition]:
    match condition:
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from _leaves(part)
        case _:
            yield condition


def _may_err(condition: Condition) -> str | None:
    match condition:
        case Pattern(operator=Operator.MATCHES, value=value) if regex_problem(value):
            return f"`{value}` is not a regular expression"
        case Predicate(text):
            return f"`{text}` fails where something that it looks at is missing"
        case _:
            return None
