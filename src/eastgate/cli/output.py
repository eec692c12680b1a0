"""The output of commands: answers on standard output, diagnostics on standard error, documented exit statuses.

A command for several environments runs once for each. The output of each run is kept as an `EnvironmentAnswer`, and
`environments` writes all of them together.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeAlias

import click

from eastgate.basics.diagnostics import Diagnostic, Severity, render_all
from eastgate.basics.diagnostics.printable import composed, json_text, printable
from eastgate.basics.records import dataclass

if TYPE_CHECKING:
    from eastgate.cluster.unread import Unread

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Adds options to a command."""

ALLOWED, DENIED, UNDECIDED, PARTIAL = 0, 1, 2, 3
FROM_WHAT_WAS_READ = "(from what was read)"
"""The first line before a list of parts of the manifests that are left out."""


@dataclass(slots=True)
class EnvironmentAnswer:
    """The output of a command about one environment, and its exit status.

    - `summary` is the answer in a few words.
    - `is_absent`: the environment does not have the object of the question.
    - `failures` are the errors that prevent an answer.
    - `is_empty`: there is nothing to show.
    """

    text: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data: list[object] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    failures: list[Diagnostic] = field(default_factory=list)
    summary: str | None = None
    is_absent: bool = False
    is_empty: bool = False
    status: int = ALLOWED


_answers: list[EnvironmentAnswer] = []  # current answers; the last one gets the output


@contextmanager
def recorded() -> Iterator[EnvironmentAnswer]:
    """Yield the answer that records the output, up to the end or the exit of the command."""
    answer = EnvironmentAnswer()
    _answers.append(answer)
    try:
        yield answer
    except SystemExit as end:
        answer.status = end.code if isinstance(end.code, int) else ALLOWED if end.code is None else UNDECIDED
    finally:
        _answers.pop()


def conclude(summary: str) -> None:
    """Set the answer in a few words. It is shown only with several environments."""
    if _answers:
        _answers[-1].summary = summary


def mark_absent() -> None:
    """Mark the answer: the environment does not have the object of the question."""
    if _answers:
        _answers[-1].is_absent = True


def mark_empty() -> bool:
    """Mark the answer as empty. Return whether one line reports that for several environments."""
    if _answers:
        _answers[-1].is_empty = True
    return bool(_answers)


def output_option(*forms: str, about: str) -> Decorator:
    """Add `-o`. The first form is the default."""
    return click.option("-o", "--output", type=click.Choice(forms), default=forms[0], show_default=True, help=about)


def colored(stream: TextIO | None = None) -> bool:
    """Return whether to color: on a terminal, unless NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream or sys.stdout).isatty()


def terminal_width() -> int | None:
    """Return the columns of the terminal of standard output; None without a terminal, for lines of any length."""
    import shutil  # it imports every compression

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_lines(text: str, *, err: bool = False) -> None:
    """Write lines for people. Every command uses this function; values in the lines are `printable` already."""
    if _answers:
        (_answers[-1].notes if err else _answers[-1].text).append(text)
        return
    color = colored(sys.stderr if err else sys.stdout)
    click.echo(composed(text, color=color), err=err, color=color)


def emit(text: str) -> None:
    """Write data in a format that escapes values itself, with its line breaks."""
    if _answers:
        _answers[-1].text.append(text.removesuffix("\n"))
    else:
        click.echo(composed(text, commands=True), nl=False)


def emit_json(data: object) -> None:
    """Write data to standard output."""
    if _answers:
        _answers[-1].data.append(data)
    else:
        emit(json_text(data, indent=2) + "\n")


def emit_yaml(data: object) -> None:
    """Write data to standard output, as YAML."""
    if _answers:
        _answers[-1].data.append(data)
        return
    import yaml  # only YAML output needs it

    from eastgate.reading.manifests.heads import PrintableDumper

    emit(yaml.dump(data, Dumper=PrintableDumper, sort_keys=False, allow_unicode=True))


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Write diagnostics to standard error."""
    shown = [diagnostic for diagnostic in diagnostics if diagnostic.code.severity is not Severity.INFO]
    if _answers:
        _answers[-1].diagnostics += shown
    elif shown:
        print_lines(render_all(shown, color=colored(sys.stderr)) + "\n", err=True)


def fail(diagnostics: Iterable[Diagnostic], left_out: Sequence[Unread] = ()) -> NoReturn:
    """Print errors, in the form of `-o`, and exit with the status for “could not decide”.

    `left_out` are the parts of the manifests that could not be read: a missing object may be in one of them.
    """
    context = click.get_current_context(silent=True)
    output = context.params.get("output") if context is not None else None
    ordered = sorted(diagnostics, key=lambda d: (d.span.file, d.span.line, d.span.column) if d.span else ("", 0, 0))
    errors = sum(1 for d in ordered if d.is_error)
    if _answers:
        _answers[-1].failures = ordered
    parts: list[dict[str, object]] = []
    lines: list[str] = []
    if left_out:
        from eastgate.cluster.unread import list_left_out, parts_of  # most manifests can be read

        parts, lines = [part.to_json() for part in parts_of(left_out)], [*list_left_out(left_out)]
    if output == "json":
        found: dict[str, object] = {"diagnostics": [d.to_json() for d in ordered]}
        emit_json({"verdict": None, "error": ordered[0].message, **found, **({"leftOut": parts} if parts else {})})
    else:
        if _answers:
            for line in lines:
                print_lines(printable(line), err=True)
            sys.exit(UNDECIDED)
        if output == "sarif":
            from eastgate.dialects.linting import Finding  # most commands have no findings
            from eastgate.reports.lint.sarif import sarif

            emit_json(sarif([Finding.of(diagnostic) for diagnostic in ordered], {}))
        warn(ordered)
        for line in lines:
            print_lines(printable(line), err=True)
        print_lines(f"{errors} error{'' if errors == 1 else 's'}: could not decide", err=True)
    sys.exit(UNDECIDED)


def left_out(files: int) -> str:
    """Print the number of files that patterns left out."""
    return f"; left out {files} file{'' if files == 1 else 's'}" if files else ""
