"""Evaluates conditions on the authorization JSON: patterns and CEL predicates, with Authorino's exact semantics."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import as_utf8, compile_re2
from eastgate.dialects.cel import GATEWAY_ROOTS, CelEvaluationError, CelProblem, compile_document_cel
from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.gjson import Selection, TooMuch, select
from eastgate.dialects.kuadrant.authorino.model import (
    All,
    AnyOf,
    CelPredicate,
    Condition,
    MissingPatterns,
    Pattern,
    PatternOperator,
    PatternRules,
    Scheme,
)
from eastgate.dialects.kuadrant.authorino.outcomes import (
    ANYTHING,
    EITHER,
    ERRS,
    FAILS,
    HOLDS,
    Outcomes,
    all_hold,
    any_holds,
)
from eastgate.dialects.kuadrant.authorino.paths import is_plain, lead
from eastgate.dialects.kuadrant.authorino.secrecy import MASK
from eastgate.ir import Seen, StepVerdict

if TYPE_CHECKING:
    pass


_MAX_SHOWN_CHARACTERS = 200  # characters of a pattern's value

_TEXTS = frozenset({("request", "method"), ("request", "host")})  # every request has these

_VERDICTS = {HOLDS: StepVerdict.ACCEPTED, FAILS: StepVerdict.REFUSED, ERRS: StepVerdict.ERROR}


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """The possible outcomes of a condition, and the values of its parts."""

    outcomes: Outcomes
    seen: tuple[Seen, ...]
    unknown: str = ""
    """The first unknown value that the outcome depends on."""

    @property
    def reason(self) -> str:
        """Return the reason of the last part that was evaluated, which is the one that decided."""
        return next((seen.reason for seen in reversed(self.seen) if seen.reason), "")


def evaluate_condition(condition: Condition, document: AuthorizationJson) -> ConditionResult:
    """Evaluate a condition from left to right, until its outcome is decided."""
    seen: list[Seen] = []
    unknown: list[str] = []
    outcomes = _outcomes(condition, document, seen, unknown)
    return ConditionResult(outcomes, tuple(seen), next(iter(unknown), ""))


@dataclass(frozen=True, slots=True)
class _PartOutcome:
    """The possible outcomes of a pattern or predicate, the value of its selector (masked), and the reason."""

    outcomes: Outcomes
    reason: str = ""
    saw: str | None = None
    unknown: str = ""


def _outcomes(condition: Condition, document: AuthorizationJson, seen: list[Seen], unknown: list[str]) -> Outcomes:
    match condition:
        case All(parts):
            return all_hold(_outcomes(part, document, seen, unknown) for part in parts)
        case AnyOf(parts):
            return any_holds(_outcomes(part, document, seen, unknown) for part in parts)
        case Pattern():
            part_outcome = _pattern(condition, document)
            text = f"{condition.selector} {condition.operator} {condition.value}"
        case CelPredicate(text):
            part_outcome = _predicate(condition, document)
        case MissingPatterns(name):
            part_outcome = _PartOutcome(ERRS, f"No patterns have the name {name!r}.")
            text = f"patternRef {name}"
    seen.append(
        Seen(
            text,
            part_outcome.saw,
            _VERDICTS.get(part_outcome.outcomes, StepVerdict.UNKNOWN),
            part_outcome.reason,
            condition.span,
        )
    )
    if part_outcome.unknown:
        unknown.append(part_outcome.unknown)
    return part_outcome.outcomes


# Patterns


def _pattern(pattern: Pattern, document: AuthorizationJson) -> _PartOutcome:
    if pattern.operator is PatternOperator.MATCHES and (problem := regex_problem(pattern.value)):
        return _PartOutcome(ERRS, f"{pattern.value!r} is not a regular expression: {problem}.")
    path = lead(pattern.selector)
    if unknown := document.unknown_to((path,)):
        possible = EITHER if is_plain(pattern.selector) else ANYTHING
        return _PartOutcome(possible, f"{pattern.selector} depends on {unknown}, which is not known.", unknown=unknown)
    try:
        selection = select(document.plain_for((path,)), pattern.selector)
    except TooMuch:
        return _PartOutcome(ERRS, f"{pattern.selector} takes too long on this request.")
    saw = _shown(selection) if not document.hidden_from((path,)) else _masked(pattern.selector, document)
    if _holds(pattern, selection):
        return _PartOutcome(HOLDS, saw=saw)
    finding = "found nothing" if saw is None else f"found {saw!r}"
    return _PartOutcome(
        FAILS, f"{pattern.selector} {pattern.operator} {pattern.value!r} does not hold: it {finding}.", saw
    )


def _holds(pattern: Pattern, selection: Selection) -> bool:
    match pattern.operator:
        case PatternOperator.EQ:
            return selection.text == pattern.value
        case PatternOperator.NEQ:
            return selection.text != pattern.value
        case PatternOperator.INCL:
            return pattern.value in selection.texts
        case PatternOperator.EXCL:
            return pattern.value not in selection.texts
        case PatternOperator.MATCHES:
            compiled = compile_re2(as_utf8(pattern.value))
            return not isinstance(compiled, str) and compiled.search(as_utf8(selection.text)) is not None


def _shown(selection: Selection) -> str | None:
    return selection.text[:_MAX_SHOWN_CHARACTERS] if selection.exists else None


def _masked(selector: str, document: AuthorizationJson) -> str | None:
    try:
        return _shown(select(document.masked, selector))
    except TooMuch:
        return MASK


def regex_problem(expression: str) -> str | None:
    """Return why a text is not an RE2 expression; None if it is one."""
    compiled = compile_re2(as_utf8(expression))
    return compiled if isinstance(compiled, str) else None


# Predicates


def _predicate(predicate: CelPredicate, document: AuthorizationJson) -> _PartOutcome:
    if predicate.at_gateway:
        expression, document = compile_document_cel(predicate.text, GATEWAY_ROOTS), document.at_gateway()
    else:
        expression = compile_document_cel(predicate.text)
    if isinstance(expression, CelProblem):
        return _PartOutcome(ERRS, f"The expression cannot be understood: {expression.message}.")
    if unknown := document.unknown_to(expression.mentions):
        possible = EITHER if expression.compares_texts and expression.mentions <= _TEXTS else ANYTHING
        return _PartOutcome(possible, f"The expression depends on {unknown}, which is not known.", unknown=unknown)
    try:
        answer = expression.evaluate(document.plain_for(expression.mentions))
    except CelEvaluationError as error:
        hidden = document.hidden_from(expression.mentions)
        return _PartOutcome(
            ERRS, "The expression has no answer." if hidden else f"The expression has no answer: {error}."
        )
    if answer is True:
        return _PartOutcome(HOLDS)
    if answer is False:
        return _PartOutcome(FAILS, f"The expression {predicate.text!r} is false.")
    return _PartOutcome(ERRS, "The expression gives something that is neither true nor false.")


# Conditions that guard a step of a scheme or the whole scheme: its `when`.


class Gate(enum.Enum):
    """The effect of a `when` on the guarded part."""

    OPEN = enum.auto()
    CLOSED = enum.auto()
    MAYBE = enum.auto()
    """It is unknown whether the gate is open or closed."""
    ERROR = enum.auto()
    UNSURE = enum.auto()
    """It is unknown whether the gate is open, closed, or errs."""


class Guarded(Protocol):
    """The attributes that steps of all kinds have."""

    @property
    def name(self) -> str:
        pass

    @property
    def priority(self) -> int:
        """Return the priority. Lower numbers come first."""

    @property
    def when(self) -> Condition | None:
        """Return the condition that guards the step."""

    @property
    def span(self) -> Span | None:
        """Return its span in the manifest."""


def _is_at_gateway(when: Condition) -> bool:
    """Return whether the filter of a gateway evaluates a condition. There, an error refuses the request."""
    return isinstance(when, All) and any(isinstance(part, CelPredicate) and part.at_gateway for part in when.parts)


def gate_of(when: Condition | None, evaluation: Evaluation) -> tuple[Gate, ConditionResult | None]:
    """Return whether the guarded step takes place, and the result of its condition."""
    if when is None:
        return Gate.OPEN, None
    result = evaluate_condition(when, evaluation.document)
    outcomes = result.outcomes
    if evaluation.services.authorino_compat and ERRS in outcomes and not _is_at_gateway(when):
        outcomes = (outcomes & ~ERRS) | FAILS
    if outcomes == HOLDS:
        return Gate.OPEN, result
    if outcomes == FAILS:
        return Gate.CLOSED, result
    if outcomes == ERRS:
        return Gate.ERROR, result
    return (Gate.UNSURE if ERRS in outcomes else Gate.MAYBE), result


# The conditions that guard parts of a scheme, and which of them may err.
#
# If such a condition errs, Authorino skips the guarded part, and Eastgate denies.


SingleCondition: TypeAlias = Pattern | CelPredicate | MissingPatterns
"""A condition without inner conditions."""


def erring_guards(scheme: Scheme) -> Iterator[tuple[SingleCondition, str]]:
    """Yield every condition of a `when` that may err, with the reason."""
    for when in _guards(scheme):
        for condition in leaves(when):
            why = _may_err(condition)
            if why is not None:
                yield condition, why


def split_sets(scheme: Scheme) -> Iterator[Span]:
    """Yield every reference to a named set of patterns in an `any`, where one pattern of the set is enough."""
    for condition in all_conditions(scheme):
        yield from _apart(condition)


def all_conditions(scheme: Scheme) -> Iterator[Condition]:
    """Yield the conditions of every `when` and of authorization."""
    yield from _guards(scheme)
    for authorization in scheme.authorizations:
        if isinstance(authorization.rule, PatternRules):
            yield authorization.rule.condition


def _apart(condition: Condition) -> Iterator[Span]:
    if isinstance(condition, AnyOf):
        yield from condition.apart
    if isinstance(condition, All | AnyOf):
        for part in condition.parts:
            yield from _apart(part)


def _guards(scheme: Scheme) -> Iterator[Condition]:
    steps: tuple[Guarded, ...] = (*scheme.identities, *scheme.metadata, *scheme.authorizations, *scheme.responses)
    for when in (scheme.when, *(step.when for step in steps)):
        if when is not None:
            yield when


def leaves(condition: Condition) -> Iterator[SingleCondition]:
    """Yield the innermost conditions of a condition."""
    match condition:
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves(part)
        case _:
            yield condition


def _may_err(condition: SingleCondition) -> str | None:
    match condition:
        case Pattern(operator=PatternOperator.MATCHES, value=value) if regex_problem(value):
            return f"`{value}` is not a regular expression"
        case CelPredicate(text):
            return f"`{text}` fails if a value that it reads is missing"
        case MissingPatterns(name):
            return f"no patterns have the name `{name}`"
        case _:
            return None
