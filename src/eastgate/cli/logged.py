"""`why` for lines of proxies that are not ours: read by the dialect of these proxies, explained by the manifests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click

from eastgate.basics.diagnostics import Diagnostic
from eastgate.cli.options import load_authority
from eastgate.cli.output import UNDECIDED, colored, emit_json, fail, say, warn
from eastgate.cli.unconsidered import handling_of

if TYPE_CHECKING:
    from eastgate.authority.decisions import Decision
    from eastgate.dialects.logs import LoggedDecision
    from eastgate.reading.manifests import Bounds
    from eastgate.reports.why import GivenEnds, LoggedExplanation
    from eastgate.settings import Settings

_CHANGED = 1


def read_logged_lines(lines: Sequence[str]) -> tuple[list[LoggedDecision], list[Diagnostic]]:
    """Return the decisions of the lines that known proxies of others wrote, and what is wrong with the rest of them."""
    from eastgate.dialects import read_log_line
    from eastgate.dialects.logs import LogLineError

    decisions, problems = [], []
    for line in lines:
        try:
            logged = read_log_line(line)
        except LogLineError as error:
            problems.append(error.diagnostic)
        else:
            decisions += [logged] if logged is not None else []
    return decisions, problems


def explain_logged_lines(
    decisions: Sequence[LoggedDecision],
    aside: int,
    files: tuple[str, ...],
    settings: Settings,
    given: GivenEnds,
    bounds: Bounds,
    unread: str | None,
    output: str,
) -> NoReturn:
    """Explain decisions by the manifests, and exit."""
    from eastgate.authority.questions import QuestionError
    from eastgate.reports.explain import explain as explained
    from eastgate.reports.why import explain_logged

    if not files:
        raise click.UsageError("lines of such proxies are explained by manifests: give them with -f")
    handling = handling_of(unread)
    authority = load_authority(files, settings, output, bounds=bounds, strict=True, unread=handling)
    warn(authority.warnings)
    explanations: list[LoggedExplanation] = []
    problems: list[Diagnostic] = []
    for logged in decisions:
        try:
            explanations.append(explain_logged(logged, authority, given))
        except QuestionError as error:
            problems.append(error.diagnostic)
    if not explanations:
        fail(problems[:1], output)

    def rendered(decision: Decision, color: bool) -> str:
        return explained(decision, color=color, unread=handling)

    if output == "json":
        lines = [explanation.to_json(rendered) for explanation in explanations]
        emit_json({"lines": lines, "leftAside": aside, "diagnostics": [problem.to_json() for problem in problems]})
    else:
        say("\n\n".join(explanation.text(rendered, color=colored()) for explanation in explanations))
        if aside:
            say(f"\nleft aside {aside} line{'' if aside == 1 else 's'} that tell of no decision", err=True)
        warn(problems)
    if problems:
        sys.exit(UNDECIDED)
    sys.exit(_CHANGED if any(explanation.holds is False for explanation in explanations) else 0)
