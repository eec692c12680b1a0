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
)
from eastgate.cli.output import ALLOWED, DENIED, colored, emit_json, fail, say, warn
from eastgate.decisions import Decision
from eastgate.printable import printable
from eastgate.questions import QuestionError
from eastgate.sources import Bounds

__all__ = ["check", "explain"]

_EXIT = "Exits with 0 if allowed, 1 if denied, 2 if it could not be decided."


@click.command(epilog=_EXIT)
@manifest_options
@question_options
@output_option
def check(output: str, **options: object) -> None:
    """May this source reach that destination?"""
    decision = _decide(output, options)
    if output == "json":
        emit_json(decision.to_json())
    else:
        place = f"  ({decision.span.place})" if decision.span else ""
        verdict = click.style(decision.verdict.upper(), fg="green" if decision.allowed else "red", bold=True)
        say(f"{verdict}  {printable(decision.reason)}{place}")
    sys.exit(ALLOWED if decision.allowed else DENIED)


@click.command(epilog=_EXIT)
@manifest_options
@question_options
@output_option
def explain(output: str, **options: object) -> None:
    """The same as check, with every layer and stage, and a caret under the YAML that decided."""
    decision = _decide(output, options)
    if output == "json":
        emit_json({**decision.to_json(), "explanation": explained(decision)})
    else:
        say(explained(decision, color=colored()))
    sys.exit(ALLOWED if decision.allowed else DENIED)


def _decide(output: str, options: dict[str, object]) -> Decision:
    files, more = options["files"], options["more_files"]
    config, written = options["config"], options["settings"]
    exclude = options["exclude"]
    assert isinstance(exclude, tuple)  # noqa: S101 - click makes it so
    assert isinstance(files, tuple) and isinstance(more, tuple) and isinstance(written, tuple)  # noqa: S101, PT018
    settings = settings_from(written, config if isinstance(config, str) else None, output)
    question = question_from(options, output)
    keys = keys_from(options, output)
    paths = (*files, *more)
    bounds = Bounds.of(paths, follow=bool(options["follow"]), exclude=exclude)
    authority = load_authority(paths, settings, output, bounds=bounds, verbose=bool(options["verbose"]), keys=keys)
    warn(authority.warnings)
    try:
        return authority.decide(question)
    except QuestionError as error:
        fail([error.diagnostic], output)
