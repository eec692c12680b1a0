"""`why`: the explanation of a line in a proxy's log."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import click

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.regexes import regex
from eastgate.cli import complete
from eastgate.cli.call import ask, mesh_option
from eastgate.cli.environments import only
from eastgate.cli.options import Sources, cluster_options, source_options
from eastgate.cli.output import UNDECIDED, colored, emit_json, fail, output_option, print_lines, warn

if TYPE_CHECKING:
    from eastgate.reports.why.log import Log, LoggedLine

_Explain: TypeAlias = "Callable[[str, LoggedLine], tuple[dict[str, Any], str]]"

CHANGED = 1
_NUMBER = regex(r"#?[0-9]{1,15}", re.ASCII)
_EXIT = (
    "Exits with 0 if the manifests give the logged verdicts, 1 if a verdict would differ now, "
    "2 if a line could not be explained."
)


@click.command(epilog=_EXIT)
@click.argument("line", required=False, metavar="[NUMBER|LINE|-]")
@click.option("--last", is_flag=True, help="The last decision of the running mesh.")
@click.option("--decision", metavar="ID", help="Only this decision of the authorizer's log.")
@click.option(
    "--from",
    "source",
    metavar="SRC",
    shell_complete=complete.sources,
    help="Caller, if a line of Istio's proxies does not name it.",
)
@click.option(
    "--to",
    metavar="DST",
    shell_complete=complete.destinations,
    help="Destination, if a line of Istio's proxies does not name it.",
)
@source_options(*cluster_options)
@mesh_option
@output_option("text", "json", about="Format of the answer.")
def why(
    line: str | None,
    last: bool,
    decision: str | None,
    source: str | None,
    to: str | None,
    sources: Sources,
    name: str,
    output: str,
) -> None:
    """Explain lines of a proxy's log.

    With -f, Eastgate explains the lines by the manifests; otherwise the running mesh explains them. NUMBER is the
    number of a decision in the output of `up`. Lines of `eastgate authorizer` and of Istio's own proxies need -f.
    """
    if last or (line is not None and _NUMBER.fullmatch(line)):
        _by_number(line, last, sources, name, output)
    if line in (None, "-") and "-" in sources.paths:
        raise click.UsageError("the lines and the manifests cannot both come from standard input")
    from eastgate.reports.why.log import read_log

    log = read_log(sys.stdin.read() if line in (None, "-") else str(line), decision)
    if (source is not None or to is not None) and not log.is_foreign:
        raise click.UsageError("--from and --to are for lines of Istio's proxies: lines of Eastgate name both ends")
    if not log.decisions:
        fail(log.problems[:1])
    needs_manifests = len(log.observations) < len(log.decisions)
    if needs_manifests and not sources.paths:
        raise click.UsageError("lines of these proxies need manifests: give them with -f")
    explain = _by_files(log, sources, (source, to), output) if sources.paths else _by_mesh(name)
    sys.exit(_explain(log, explain, output, verbose=sources.verbose))


def _explain(log: Log, explain: _Explain, output: str, *, verbose: bool) -> int:
    """Print the explanation of each line, and return the exit status."""
    from eastgate.authority.questions import QuestionError

    explained: list[dict[str, Any]] = []
    problems: list[Diagnostic] = []
    for text, logged in log.decisions:
        try:
            data, words = explain(text, logged)
        except QuestionError as error:
            problems.append(error.diagnostic)
            continue
        if output != "json":
            print_lines(("\n" if explained else "") + words)
        explained.append(data)
    if not explained:
        fail(problems[:1])
    if output == "json":
        diagnostics = [problem.to_json() for problem in problems]
        emit_json({"lines": explained, "leftAside": log.aside, "diagnostics": diagnostics})
    else:
        if log.aside:
            print_lines(f"\nleft aside {log.aside} line{'' if log.aside == 1 else 's'} without a decision", err=True)
        warn(problems)
    if verbose:
        print_lines(f"explained {len(explained)} line{'' if len(explained) == 1 else 's'}", err=True)
    return UNDECIDED if problems else CHANGED if any(each["holds"] is False for each in explained) else 0


def _by_number(line: str | None, last: bool, sources: Sources, name: str, output: str) -> NoReturn:
    """Explain a decision that the running mesh remembers, and exit."""
    if sources.paths:
        raise click.UsageError("decisions have numbers in a running mesh only: leave out -f, or give a line of a log")
    if last and line is not None:
        raise click.UsageError(f"either --last or {line}")
    number = {} if line is None else {"number": int(line.removeprefix("#"))}
    answer = ask(name, "why", color=colored(), **number)
    if output == "json":
        emit_json({"lines": [answer["why"]], "leftAside": 0, "diagnostics": []})
    else:
        print_lines(answer["text"])
    sys.exit(CHANGED if answer["why"]["holds"] is False else 0)


def _by_mesh(name: str) -> _Explain:
    def explain(line: str, _logged: LoggedLine) -> tuple[dict[str, Any], str]:
        answer = ask(name, "why", line=line, color=colored())
        return answer["why"], answer["text"]

    return explain


def _by_files(log: Log, sources: Sources, ends: tuple[str | None, str | None], output: str) -> _Explain:
    from dataclasses import replace

    from eastgate.cli.questions import destination_from, source_from
    from eastgate.reports.why.ends import GivenEnds
    from eastgate.reports.why.log import explain_line

    source, to = ends
    settings = log.settings(sources.settings())
    given = GivenEnds(
        source_from(source, settings) if source is not None else None,
        destination_from(to, settings) if to is not None else None,
    )
    authority = replace(only(sources, "a log is from one environment"), strict=True).authority(settings)
    log.locate(authority)
    warn(authority.warnings)

    def explain(_line: str, logged: LoggedLine) -> tuple[dict[str, Any], str]:
        explanation = explain_line(logged, authority, given)
        if output == "json":
            return explanation.to_json(unread=sources.unread), ""
        return {"holds": explanation.comparison.holds}, explanation.text(color=colored(), unread=sources.unread)

    return explain
