"""`check` and `explain`: one question, one answer."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator

import click

from eastgate.api.decisions import Decision
from eastgate.api.outcomes import Examples, examples
from eastgate.api.questions import QuestionError
from eastgate.api.spelling import KnownNames
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
from eastgate.cli.output import colored, emit_json, fail, say, warn
from eastgate.cli.unconsidered import handling_of, status_of, tell, unread_option
from eastgate.diagnostics import Diagnostic
from eastgate.diagnostics.printable import printable
from eastgate.manifests import Bounds
from eastgate.records import dataclass
from eastgate.unread import Handling

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
    decision, more = _decide(output, options)
    if output == "json":
        emit_json({**decision.to_json(), **more.to_json()})
    else:
        location = f"  ({decision.span.location})" if decision.span else ""
        verdict = click.style(decision.stated(more.unread), fg="green" if decision.allowed else "red", bold=True)
        say("\n".join([f"{verdict}  {printable(decision.reason)}{location}", *more.lines()]))
        tell(decision.unconsidered, more.unread)
    sys.exit(status_of(decision, more.unread))


@click.command(epilog=_EXIT)
@manifest_options
@question_options
@strict_option
@unread_option
@output_option
def explain(output: str, **options: object) -> None:
    """The same as check, with every layer and stage, and a caret under the YAML that decided."""
    from eastgate.reports.explain import explain as explained  # `check` does without

    decision, more = _decide(output, options)
    if output == "json":
        emit_json({**decision.to_json(), **more.to_json(), "explanation": explained(decision, unread=more.unread)})
    else:
        head, *rest = explained(decision, color=colored(), unread=more.unread).splitlines()
        say("\n".join([head, *rest[:1], *more.lines(), *rest[1:]]))
    sys.exit(status_of(decision, more.unread))


@dataclass(frozen=True, slots=True)
class _More:
    """The parts beside the answer: what is probably wrong with the question, what it leaves open, and how far to
    tell what was not considered.
    """

    warnings: list[Diagnostic]
    examples: Examples | None
    unread: Handling

    def to_json(self) -> dict[str, object]:
        return {
            "warnings": [warning.to_json() for warning in self.warnings],
            "examples": self.examples.to_json() if self.examples is not None else None,
        }

    def lines(self) -> Iterator[str]:
        if self.examples is not None:
            yield printable(f"  allowed, for example, with {shlex.join(self.examples.allow)}")
            if self.examples.deny is not None:
                yield printable(f"  denied, for example, with  {shlex.join(self.examples.deny)}")


def _decide(output: str, options: dict[str, object]) -> tuple[Decision, _More]:
    files, more = options["files"], options["more_files"]
    config, set_values = options["config"], options["settings"]
    exclude = options["exclude"]
    assert isinstance(exclude, tuple)  # noqa: S101 - click makes it so
    assert isinstance(files, tuple) and isinstance(more, tuple) and isinstance(set_values, tuple)  # noqa: S101, PT018
    settings = settings_from(set_values, config if isinstance(config, str) else None, output)
    question = question_from(options, output)
    keys = keys_from(options, output)
    paths = (*files, *more)
    bounds = Bounds.of(paths, follow=bool(options["follow"]), exclude=exclude)
    strict, handling = bool(options["strict"]), handling_of(options["unread"])
    authority = load_authority(
        paths,
        settings,
        output,
        bounds=bounds,
        verbose=bool(options["verbose"]),
        keys=keys,
        strict=strict,
        unread=handling,
    )
    doubts = [doubt.diagnostic(strict=strict) for doubt in KnownNames(authority).doubts(question)]
    try:
        decision = authority.decide(question)
    except QuestionError as error:
        errors = (own for policy in authority.rejected for own in policy.errors)
        broken = (diagnostic for diagnostic in errors if diagnostic not in error.diagnostics)
        fail([*error.diagnostics, *broken, *doubts], output)
    if strict and doubts:
        fail(doubts, output)
    warn([*authority.warnings, *doubts])
    return decision, _More(doubts, examples(decision, authority), handling)
