"""What Authorino makes of conditions: it skips what is denied here where one errs, and takes sets in `any` apart."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.authconfig.guards import erring_guards, sets_apart
from eastgate.authconfig.model import Pattern, Predicate
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.lint import codes
from eastgate.lint.ground import Ground, KuadrantPolicy, subject_of
from eastgate.lint.model import Finding

__all__ = ["erring_conditions", "sets_in_any"]


def erring_conditions(ground: Ground) -> Iterator[Finding]:
    """Every `when` that may err: the setting authorinoCompat decides what becomes of it."""
    compat = ground.settings.section(KuadrantSettings).authorino_compat
    for policy in ground.policies:
        if not isinstance(policy, KuadrantPolicy) or policy.audit:
            continue
        for scheme in policy.schemes:
            for condition, why in erring_guards(scheme):
                yield _told(policy, condition, why, compat=compat)


def sets_in_any(ground: Ground) -> Iterator[Finding]:
    """Every named set of patterns of which one is enough, because it stands in `any`."""
    for policy in ground.policies:
        if isinstance(policy, KuadrantPolicy):
            for span in dict.fromkeys(span for scheme in policy.schemes for span in sets_apart(scheme)):
                message = "one of the patterns of this set is enough here, not all of them"
                subjects = (str(policy.ref), subject_of(policy.target))
                yield Finding(
                    codes.SET_IN_ANY, message, span, "write all: [{patternRef: ..}] if all are meant", subjects
                )


def _told(policy: KuadrantPolicy, condition: Pattern | Predicate, why: str, *, compat: bool) -> Finding:
    now, then = ("skips", "denies") if compat else ("denies", "skips")
    other = str(not compat).lower()
    message = f"{why}: that {now} what it guards, and {then} it with authorinoCompat: {other}"
    span = condition.span or policy.target_span
    help_ = "write a condition that cannot fail: test that a value exists before it is used"
    return Finding(codes.READING_AUTHORINO_COMPAT, message, span, help_, (str(policy.ref), subject_of(policy.target)))
