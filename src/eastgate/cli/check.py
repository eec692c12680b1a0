"""`check` and `explain`: one question, one answer."""

from __future__ import annotations

import sys

import click

from eastgate.analysis.explain import explain as explained
from eastgate.cli.options import (
    keys_from,
    load_authority,
    manifest_options,
    output_option,
    question_from,
    question_options,
    settings_from,
    strict_option,
)
from eastgate.cli.output import ALLOWED, DENIED, colored, emit_json, fail, say, warn
from eastgate.decisions import Decision
from eastgate.diagnostics import Diagnostic
from eastgate.printable import printable
from eastgate.questions import QuestionError
from eastgate.spelling import Spelling

__all__ = ["check", "explain"]

_EXIT = "Exits with 0 if allowed, 1 if denied, 2 if it could not be decided."


@click.command(epilog=_EXIT)
@manifest_options
@question_options
@strict_option
@output_option
def check(output: str, **options: object) -> None:
    """May this source reach that destination?"""
    decision, warnings = _decide(output, options)
    if output == "json":
        emit_json({**decision.to_json(), "warnings": [one.to_json() for one in warnings]})
    else:
        place = f"  ({decision.span.place})" if decision.span else ""
        verdict = click.style(decision.verdict.upper(), fg="green" if decision.allowed else "red", bold=True)
        say(f"{verdict}  {printable(decision.reason)}{place}")
    sys.exit(ALLOWED if decision.allowed else DENIED)


@click.command(epilog=_EXIT)
@manifest_options
@question_options
@strict_option
@output_option
def explain(output: str, **options: object) -> None:
    """The same as check, with every layer and stage, and a caret under the YAML that decided."""
    decision, warnings = _decide(output, options)
    if output == "json":
        told = {**decision.to_json(), "warnings": [one.to_json() for one in warnings]}
        emit_json({**told, "explanation": explained(decision)})
    else:
        say(explained(decision, color=colored()))
    sys.exit(ALLOWED if decision.allowed else DENIED)


def _decide(output: str, options: dict[str, object]) -> tuple[Decision, list[Diagnostic]]:
    """The answer, and what is probably wrong with the question."""
    files, more = options["files"], options["more_files"]
    config, written = options["config"], options["settings"]
    assert isinstance(files, tuple) and isinstance(more, tuple) and isinstance(written, tuple)  # noqa: S101, PT018
    settings = settings_from(written, config if isinstance(config, str) else None, output)
    question = question_from(options, output)
    keys = keys_from(options, output)
    authority = load_authority(
        (*files, *more), settings, output, follow=bool(options["follow"]), verbose=bool(options["verbose"]), keys=keys
    )
    strict = bool(options["strict"])
    doubts = [doubt.diagnostic(strict=strict) for doubt in Spelling(authority).doubts(question)]
    try:
        decision = authority.decide(question)
    except QuestionError as error:
        fail([error.diagnostic, *doubts], output)
    if strict and doubts:
        fail(doubts, output)
    warn([*authority.warnings, *doubts])
    return decision, doubts
