"""How commands speak: JSON or text on standard output, diagnostics on standard error, documented exit statuses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeAlias

import click

from eastgate.basics.diagnostics import Diagnostic, Severity, render_all
from eastgate.basics.diagnostics.printable import composed, json_text, printable

if TYPE_CHECKING:
    from eastgate.cluster.unread import Unread

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Adds options to a command."""

ALLOWED, DENIED, UNDECIDED, PARTIAL = 0, 1, 2, 3
FROM_WHAT_WAS_READ = "(from what was read)"
"""The first line of what is said while parts of the manifests are left out."""


def output_option(*forms: str, about: str) -> Decorator:
    """Add `-o`. The first form is the default."""
    return click.option("-o", "--output", type=click.Choice(forms), default=forms[0], show_default=True, help=about)


def colored(stream: TextIO | None = None) -> bool:
    """Return whether to color: on a terminal, unless NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream or sys.stdout).isatty()


def terminal_width() -> int | None:
    """Return the columns of the terminal that is standard output; None, for lines of any length, where it is none."""
    import shutil  # it brings every compression along

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def say(text: str, *, err: bool = False) -> None:
    """Write lines for people. Every command speaks through this; values in the lines are `printable` already."""
    color = colored(sys.stderr if err else sys.stdout)
    click.echo(composed(text, color=color), err=err, color=color)


def emit(text: str) -> None:
    """Write data in a format that has escapes of its own, line breaks and all."""
    click.echo(composed(text, commands=True), nl=False)


def emit_json(data: object) -> None:
    """Write data to standard output."""
    emit(json_text(data, indent=2) + "\n")


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Write diagnostics to standard error."""
    if shown := [diagnostic for diagnostic in diagnostics if diagnostic.code.severity is not Severity.INFO]:
        say(render_all(shown, color=colored(sys.stderr)) + "\n", err=True)


def fail(diagnostics: Iterable[Diagnostic], left_out: Sequence[Unread] = ()) -> NoReturn:
    """Say what is wrong, in the form of `-o`, and exit with the status for “could not decide”.

    `left_out` are the parts of the manifests that could not be read, one of which may be what is missing.
    """
    context = click.get_current_context(silent=True)
    output = context.params.get("output") if context is not None else None
    ordered = sorted(diagnostics, key=lambda d: (d.span.file, d.span.line, d.span.column) if d.span else ("", 0, 0))
    errors = sum(1 for d in ordered if d.is_error)
    parts: list[dict[str, object]] = []
    lines: list[str] = []
    if left_out:
        from eastgate.cluster.unread import list_left_out, parts_of  # most manifests can be read

        parts, lines = [part.to_json() for part in parts_of(left_out)], [*list_left_out(left_out)]
    if output == "json":
        found: dict[str, object] = {"diagnostics": [d.to_json() for d in ordered]}
        emit_json({"verdict": None, "error": ordered[0].message, **found, **({"leftOut": parts} if parts else {})})
    else:
        if output == "sarif":
            from eastgate.dialects.linting import Finding  # most commands have no findings
            from eastgate.reports.lint.sarif import sarif

            emit_json(sarif([Finding.of(diagnostic) for diagnostic in ordered], {}))
        warn(ordered)
        for line in lines:
            say(printable(line), err=True)
        say(f"{errors} error{'' if errors == 1 else 's'}: could not decide", err=True)
    sys.exit(UNDECIDED)
