"""Evaluates one authorization rule of a scheme on one request."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.authorization.access import by_access_review
from eastgate.dialects.kuadrant.authorino.authorization.permissions import by_permission
from eastgate.dialects.kuadrant.authorino.authorization.rego import by_rego
from eastgate.dialects.kuadrant.authorino.caching import ask_cached
from eastgate.dialects.kuadrant.authorino.conditions import ConditionResult, evaluate_condition
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.model import (
    Authorization,
    PatternRules,
    PermissionCheck,
    Rego,
    SubjectAccess,
)
from eastgate.dialects.kuadrant.authorino.outcomes import ERRS, FAILS, HOLDS
from eastgate.ir import Seen


def authorize(authorization: Authorization, evaluation: Evaluation) -> tuple[Finding, tuple[Seen, ...]]:
    """Return whether the rule agrees, and what its patterns saw."""
    seen: list[Seen] = []
    finding = ask_cached(
        evaluation.services.cache,
        authorization.cache,
        (evaluation.scheme, authorization),
        evaluation.document,
        lambda: _authorize(authorization, evaluation, seen),
    )
    return finding, tuple(seen)


def _authorize(authorization: Authorization, evaluation: Evaluation, seen: list[Seen]) -> Finding:
    match authorization.rule:
        case PatternRules(condition):
            result = evaluate_condition(condition, evaluation.document)
            seen += result.seen
            return _by_patterns(result)
        case Rego() as rego:
            return by_rego(rego, evaluation)
        case SubjectAccess() as access:
            return by_access_review(access, evaluation)
        case PermissionCheck() as check:
            return by_permission(check, evaluation)


def _by_patterns(result: ConditionResult) -> Finding:
    if result.outcomes == HOLDS:
        return Found(True, True, "Its conditions hold.")
    if result.outcomes == FAILS:
        return Refused(result.reason or "Its conditions do not hold.")
    if result.outcomes == ERRS:
        return Broken(result.reason)
    return NotKnown(result.unknown)
