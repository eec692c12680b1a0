"""Diagnostics as an API server hands them on: a line each, with the code, the field and the way out."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.diagnostics.printable import printable
from eastgate.controller.admission.changes import AdmissionRefusal
from eastgate.dialects.linting import Finding

# The API server cuts a warning after 256 characters, and leaves out all that follow once 4096 are reached, of all
# webhooks together. Others shall have room too.
_LONGEST_WARNING = 256
_ALL_WARNINGS = 2048
_MOST_REFUSALS = 32
_LONGEST_REFUSAL = 1024


def refusal_of(about: Diagnostic | Finding, field: str | None) -> AdmissionRefusal:
    """Return the refusal for an error."""
    help_ = f"; {about.help}" if about.help else ""
    return AdmissionRefusal(_cut(printable(f"{about.code.id} {about.message}{help_}"), _LONGEST_REFUSAL), field)


def warning_of(about: Diagnostic | Finding, field: str | None) -> str:
    """Return a warning: what is to be said, without the way out, which would make it long."""
    return _cut(printable(f"{about.code.id} {f'{field}: ' if field else ''}{about.message}"), _LONGEST_WARNING)


def limit_warnings(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings that an API server has room for, each once; the last says how many were left out.

    They are findings of lint, and then what a change opens and closes.
    """
    distinct = [_cut(printable(warning), _LONGEST_WARNING) for warning in dict.fromkeys(warnings)]
    kept: list[str] = []
    for warning in distinct:
        if sum(map(len, kept)) + len(warning) > _ALL_WARNINGS:
            break
        kept.append(warning)
    left_out = len(distinct) - len(kept)
    return (*kept, f"{left_out} more: see `eastgate lint` and `eastgate diff`") if left_out else tuple(kept)


def limit_refusals(refusals: Iterable[AdmissionRefusal]) -> tuple[AdmissionRefusal, ...]:
    """Return the first refusals; the last says how many there are beyond them."""
    distinct = list(dict.fromkeys(refusals))
    left_out = len(distinct) - _MOST_REFUSALS
    return (*distinct[:_MOST_REFUSALS], AdmissionRefusal(f"and {left_out} more")) if left_out > 0 else tuple(distinct)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
