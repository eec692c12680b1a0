"""Auth schemes for lint: conditions that may err, sets in `any`, and rules that another spelling of a path evades.

If a condition errs, Authorino skips the guarded part and Eastgate denies. Authorino also splits sets in `any`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects.kuadrant.authorino.conditions import SingleCondition, erring_guards, split_sets
from eastgate.dialects.kuadrant.authorino.evasions import evasions
from eastgate.dialects.kuadrant.authorino.model import Scheme
from eastgate.dialects.kuadrant.schemes import lint_codes as codes
from eastgate.dialects.linting import Finding
from eastgate.settings import DataPlane, Settings


def erring_conditions(
    schemes: Iterable[Scheme], subjects: tuple[str, ...], span: Span, *, compat: bool
) -> Iterator[Finding]:
    """Report every `when` that may err. The setting authorinoCompat decides whether an error skips or denies."""
    for scheme in schemes:
        for condition, why in erring_guards(scheme):
            yield _erring(condition, why, subjects, span, compat=compat)


def _erring(condition: SingleCondition, why: str, subjects: tuple[str, ...], span: Span, *, compat: bool) -> Finding:
    now, then = ("skips", "denies") if compat else ("denies", "skips")
    other = str(not compat).lower()
    message = f"{why}: this {now} the guarded part, and {then} it with authorinoCompat: {other}"
    help_ = "write a condition that cannot fail: test that a value exists before it is used"
    return Finding(codes.READING_AUTHORINO_COMPAT, message, condition.span or span, help_, subjects)


def sets_in_any(schemes: Iterable[Scheme], subjects: tuple[str, ...]) -> Iterator[Finding]:
    """Report every named set in `any`, because one of its patterns is enough."""
    for span in dict.fromkeys(span for scheme in schemes for span in split_sets(scheme)):
        message = "one of the patterns of this set is enough here, not all of them"
        help_ = "write all: [{patternRef: ..}] to require all of them"
        yield Finding(codes.SET_IN_ANY, message, span, help_, subjects)


def respelt_rules(
    schemes: Iterable[Scheme], subjects: tuple[str, ...], span: Span, settings: Settings
) -> Iterator[Finding]:
    """Report every rule that another spelling of a path evades, unless Eastgate's proxies enforce."""
    if settings.data_plane is DataPlane.EASTGATE:
        return
    for scheme in schemes:
        for evasion in evasions(scheme):
            message = (
                f"{evasion.part} can be evaded at Authorino: to an application {evasion.method} "
                f"{evasion.spelling} is {evasion.method} {evasion.path}, to Authorino it is not"
            )
            help_ = "at the proxy, refuse paths with needlessly encoded characters (%40 for @), or let Eastgate decide"
            yield Finding(codes.RULE_RESPELT, message, evasion.span or span, help_, subjects)
