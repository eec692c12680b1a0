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
from eastgate.cli.output import colored, emit_json, fail, say, warn
from eastgate.cli.unconsidered import handling_of, status_of, strict_option, tell, unread_option
from eastgate.decisions import Decision
from eastgate.printable import printable
from eastgate.questions import QuestionError
from eastgate.unconsidered import Handling

__all__ = ["check", "explain"]

_EXIT = (
    "Exits with 0 if allowed, 1 if denied, 2 if it could not be decided, "
    "3 if the answer is about what was read, and what is not read could change it."
)


@click.command(epilog=_EXIT)
@manifest_options
@question_options
@strict_option
@unread_option
@output_option
def check(output: str, **options: object) -> None:
    """May this source reach that destination?"""
    decision, handling = _decide(output, options)
    if output == "json":
        emit_json(decision.to_json())
    else:
        place = f"  ({decision.span.place})" if decision.span else ""
        verdict = click.style(decision.stated(handling), fg="green" if decision.allowed else "red", bold=True)
        say(f"{verdict}  {printable(decision.reason)}{place}")
        tell(decision.unconsidered, handling)
    sys.exit(status_of(decision, handling))


@click.command(epilog=_EXIT)
@manifest_options
@question_options
@strict_option
@unread_option
@output_option
def explain(output: str, **options: object) -> None:
    """The same as check, with every layer and stage, and a caret under the YAML that decided."""
    decision, handling = _decide(output, options)
    if output == "json":
        emit_json({**decision.to_json(), "explanation": explained(decision, unread=handling)})
    else:
        say(explained(decision, color=colored(), unread=handling))
    sys.exit(status_of(decision, handling))


def _decide(output: str, options: dict[str, object]) -> tuple[Decision, Handling]:
    files, more = options["files"], options["more_files"]
    config, written = options["config"], options["settings"]
    assert isinstance(files, tuple) and isinstance(more, tuple) and isinstance(written, tuple)  # noqa: S101, PT018
    settings = settings_from(written, config if isinstance(config, str) else None, output)
    question = question_from(options, output)
    keys = keys_from(options, output)
    handling = handling_of(options["unread"])
    authority = load_authority(
        (*files, *more),
        settings,
        output,
        follow=bool(options["follow"]),
        verbose=bool(options["verbose"]),
        keys=keys,
        strict=bool(options["strict"]),
        unread=handling,
    )
    warn(authority.warnings)
    try:
        return authority.decide(question), handling
    except QuestionError as error:
        fail(error.diagnostics, output)
