"""`why`: a line of a proxy's log, explained."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import click

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.regexes import regex
from eastgate.cli import complete
from eastgate.cli.asking import ask, mesh_option
from eastgate.cli.logged import explain_logged_lines, read_logged_lines
from eastgate.cli.options import load_authority, output_option, reading_options, settings_from
from eastgate.cli.output import colored, emit_json, fail, say, warn
from eastgate.cli.unconsidered import handling_of, unread_option
from eastgate.reading.manifests import Bounds

if TYPE_CHECKING:
    from eastgate.authority.decisions import Decision
    from eastgate.cluster.unread import Handling
    from eastgate.control.access_log import Observation
    from eastgate.reports.why import GivenEnds
    from eastgate.settings import Settings

_Explain: TypeAlias = "Callable[[str, Observation], tuple[dict[str, Any], str]]"

CHANGED = 1
_NUMBER = regex(r"#?[0-9]{1,15}", re.ASCII)
_MESHES = IPv4Network("127.64.0.0/10")
_ITSELF = "default/localhost"  # how proxies call the rule that lets a workload call itself
_EXIT = (
    "Exits with 0 if the manifests still say what the log says, 1 if a verdict would be another one today, "
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
@reading_options
@unread_option
@mesh_option
@output_option
def why(
    line: str | None,
    last: bool,
    decision: str | None,
    source: str | None,
    to: str | None,
    files: tuple[str, ...],
    settings: tuple[str, ...],
    config: str | None,
    follow: bool,
    exclude: tuple[str, ...],
    verbose: bool,
    unread: str | None,
    name: str,
    output: str,
) -> None:
    """Explain lines of a proxy's log.

    With -f the manifests explain the lines, otherwise the running mesh does. NUMBER is the number of a decision that
    `up` shows. Lines of `eastgate authorizer` and of Istio's own proxies need the manifests.
    """
    if last or (line is not None and _NUMBER.fullmatch(line)):
        _by_number(line, last, files, name, output)
    if line in (None, "-") and "-" in files:
        raise click.UsageError("both the lines and the manifests are to come from standard input")
    text = sys.stdin.read() if line in (None, "-") else str(line)

    if records := _checks(text, decision, output):
        chosen = settings_from(settings, config, output)
        _explain_checks(records, files, chosen, Bounds.of(files, follow=follow, exclude=exclude), unread, output)
    _explain_others(
        text, files, (source, to), settings, config, Bounds.of(files, follow=follow, exclude=exclude), unread, output
    )
    if source is not None or to is not None:
        raise click.UsageError("--from and --to are for lines of Istio's proxies: ours say who called what")
    lines, aside = _lines(text, output)
    if files:
        observed = [seen for _, seen in lines]
        handling = handling_of(unread)
        explain = _by_files(
            files,
            settings_from(settings, config, output),
            observed,
            Bounds.of(files, follow=follow, exclude=exclude),
            handling,
            output,
        )
    else:
        explain = _by_mesh(name, output)
    explanations = []
    for index, (line_text, seen) in enumerate(lines):
        data, words = explain(line_text, seen)
        explanations.append(data)
        if output != "json":
            say(("\n" if index else "") + words)
    if output == "json":
        emit_json({"lines": explanations, "leftAside": aside})
    elif aside:
        say(f"\nleft aside {aside} line{'' if aside == 1 else 's'} that tell of no decision", err=True)
    if verbose:
        say(f"explained {len(lines)} line{'' if len(lines) == 1 else 's'}", err=True)
    sys.exit(CHANGED if any(explanation["holds"] is False for explanation in explanations) else 0)


def _checks(text: str, decision: str | None, output: str) -> list[Mapping[str, Any]]:
    """The records of the authorizer's log; those of one decision, where one is asked for, or exits."""
    from eastgate.control.access_log import find_record
    from eastgate.control.codes import NOT_A_LOG_LINE

    records = [record for line in text.splitlines() if (record := find_record(line)) is not None]
    checks = [record for record in records if record.get("eastgate") == "check"]
    if decision is None:
        return checks
    chosen = [record for record in checks if record.get("id") == decision]
    if not chosen:
        message = f"no line tells of the decision `{decision}`"
        fail([Diagnostic(NOT_A_LOG_LINE, message, None, "pipe the log of `eastgate authorizer` into it")], output)
    return chosen


def _explain_checks(
    records: Sequence[Mapping[str, Any]],
    files: tuple[str, ...],
    settings: Settings,
    bounds: Bounds,
    unread: str | None,
    output: str,
) -> NoReturn:
    """Explain decisions of the authorizer by manifests, and exit."""
    from eastgate.authority.questions import QuestionError
    from eastgate.control.authorizer.explaining import explain_record
    from eastgate.reports.explain import explain as explained

    handling = handling_of(unread)
    authority = load_authority(files, settings.enforced(), output, bounds=bounds, strict=True, unread=handling)
    warn(authority.warnings)

    def rendered(decision: Decision, color: bool) -> str:
        return explained(decision, color=color, unread=handling)

    try:
        explanations = [explain_record(record, authority) for record in records]
    except QuestionError as error:
        fail([error.diagnostic], output)
    if output == "json":
        lines = [explanation.to_json(rendered) for explanation in explanations]
        emit_json({"lines": lines, "leftAside": 0})
    else:
        say("\n\n".join(explanation.text(rendered, color=colored()) for explanation in explanations))
    sys.exit(CHANGED if any(explanation.holds is False for explanation in explanations) else 0)


def _explain_others(
    text: str,
    files: tuple[str, ...],
    given: tuple[str | None, str | None],
    settings: tuple[str, ...],
    config: str | None,
    bounds: Bounds,
    unread: str | None,
    output: str,
) -> None:
    """Explain lines of proxies that are not ours, and exit, where there are such lines and none of ours."""
    from eastgate.control.access_log import find_record

    lines = [line for line in text.splitlines() if line.strip()]
    if any(find_record(line) is not None for line in lines):
        return
    decisions, problems = read_logged_lines(lines)
    if decisions:
        chosen = settings_from(settings, config, output)
        ends = _given(given, chosen, output)
        explain_logged_lines(decisions, len(lines) - len(decisions), files, chosen, ends, bounds, unread, output)
    if problems:
        fail(problems[:1], output)


def _given(given: tuple[str | None, str | None], settings: Settings, output: str) -> GivenEnds:
    """Return the ends that options name."""
    from eastgate.cluster.ends import parse_destination, parse_source
    from eastgate.cluster.question_errors import QuestionError
    from eastgate.reports.why import GivenEnds

    source, to = given
    try:
        return GivenEnds(
            parse_source(source, settings.namespace) if source is not None else None,
            parse_destination(to, settings.namespace) if to is not None else None,
        )
    except QuestionError as error:
        fail([error.diagnostic], output)


def _by_number(line: str | None, last: bool, files: tuple[str, ...], name: str, output: str) -> NoReturn:
    """Explain a decision that the running mesh remembers, and exit."""
    if files:
        raise click.UsageError("decisions have numbers in a running mesh only: leave out -f, or give a line of a log")
    if last and line is not None:
        raise click.UsageError(f"either --last or {line}")
    number = {} if line is None else {"number": int(line.removeprefix("#"))}
    answer = ask(name, "why", output, color=colored(), **number)
    if output == "json":
        emit_json({"lines": [answer["why"]], "leftAside": 0})
    else:
        say(answer["text"])
    sys.exit(CHANGED if answer["why"]["holds"] is False else 0)


def _lines(text: str, output: str) -> tuple[list[tuple[str, Observation]], int]:
    """Return the lines that tell of decisions, and how many others there are. Without any of the first, exits."""
    from eastgate.authority.questions import QuestionError
    from eastgate.control.access_log import find_record, read_line
    from eastgate.control.codes import NOT_A_LOG_LINE
    from eastgate.local.history import Repeats

    source_lines = [line for line in text.splitlines() if line.strip()]
    observations: list[tuple[str, Observation]] = []
    problems: list[Diagnostic] = []
    repeats = Repeats()
    for line in source_lines:
        try:
            seen = read_line(find_record(line), line)
        except QuestionError as error:
            problems.append(error.diagnostic)
            continue
        if not repeats.is_repeat(seen):
            observations.append((line, seen))
    if not source_lines:
        way_out = "give a line, or pipe a proxy's log into `eastgate why -`"
        fail([Diagnostic(NOT_A_LOG_LINE, "there is no line to explain", None, way_out)], output)
    if not observations:
        fail(problems[:1], output)
    return observations, len(source_lines) - len(observations)


def _by_mesh(name: str, output: str) -> _Explain:
    def explain(line: str, _seen: Observation) -> tuple[dict[str, Any], str]:
        answer = ask(name, "why", output, line=line, color=colored())
        return answer["why"], answer["text"]

    return explain


def _by_files(
    files: tuple[str, ...],
    settings: Settings,
    lines: Sequence[Observation],
    bounds: Bounds,
    handling: Handling,
    output: str,
) -> _Explain:
    """Return what explains lines of a log by manifests. Lines of a local mesh do not tell where its workloads are.

    Whoever calls from a network of such meshes is taken for a workload, and whom the log calls localhost for the
    workload itself.
    """
    from eastgate.authority.questions import QuestionError
    from eastgate.local.why import explain_observation
    from eastgate.reports.explain import explain as explained

    local = any((seen.source or "").startswith("127.") for seen in lines)
    enforced = replace(settings.enforced(), local_networks=(_MESHES,) if local else ())
    authority = load_authority(files, enforced, output, bounds=bounds, strict=True, unread=handling)
    if local:
        itself = (seen for seen in lines if seen.who.startswith(_ITSELF) and seen.source is not None)
        authority.assign_addresses({seen.workload: str(seen.source).rpartition(":")[0] for seen in itself})
    warn(authority.warnings)

    def rendered(decision: Decision, color: bool) -> str:
        return explained(decision, color=color, unread=handling)

    def explain(_line: str, seen: Observation) -> tuple[dict[str, Any], str]:
        try:
            explanation = explain_observation(seen, authority)
        except QuestionError as error:
            fail([error.diagnostic], output)
        return explanation.to_json(rendered), explanation.text(rendered, color=colored())

    return explain
