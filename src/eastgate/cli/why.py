"""`why`: a line of a proxy's log, explained."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from eastgate.cli.asking import ask, mesh_option
from eastgate.cli.options import load_authority, output_option, reading_options, settings_from
from eastgate.cli.output import colored, emit_json, fail, say, warn
from eastgate.diagnostics import Diagnostic

if TYPE_CHECKING:
    from eastgate.decisions import Decision
    from eastgate.mesh.records import Observed
    from eastgate.settings import Settings

__all__ = ["why"]

_Explain: TypeAlias = "Callable[[str, Observed], tuple[dict[str, Any], str]]"

CHANGED = 1
_EXIT = (
    "Exits with 0 if the manifests still say what the log says, 1 if a verdict would be another one today, "
    "2 if a line could not be explained."
)


@click.command(epilog=_EXIT)
@click.argument("line", required=False, metavar="[LINE|-]")
@reading_options
@mesh_option
@output_option
def why(
    line: str | None,
    files: tuple[str, ...],
    settings: tuple[str, ...],
    config: str | None,
    follow: bool,
    verbose: bool,
    name: str,
    output: str,
) -> None:
    """Explain lines of a proxy's log: by the manifests, or by the running mesh without -f."""
    if line in (None, "-") and "-" in files:
        raise click.UsageError("both the lines and the manifests are to come from standard input")
    text = sys.stdin.read() if line in (None, "-") else str(line)

    lines, aside = _lines(text, output)
    if files:
        local = any((seen.source or "").startswith("127.") for _, seen in lines)
        explain = _by_files(files, settings_from(settings, config, output), local, follow, output)
    else:
        explain = _by_mesh(name, output)
    told = []
    for place, (written, seen) in enumerate(lines):
        data, words = explain(written, seen)
        told.append(data)
        if output != "json":
            say(("\n" if place else "") + words)
    if output == "json":
        emit_json({"lines": told, "leftAside": aside})
    elif aside:
        say(f"\nleft aside {aside} line{'' if aside == 1 else 's'} that tell of no decision", err=True)
    if verbose:
        say(f"explained {len(lines)} line{'' if len(lines) == 1 else 's'}", err=True)
    sys.exit(CHANGED if any(one["holds"] is False for one in told) else 0)


def _lines(text: str, output: str) -> tuple[list[tuple[str, Observed]], int]:
    """The lines that tell of decisions, and how many others there are. Without any of the first, exits."""
    from eastgate.mesh.codes import NOT_A_LOG_LINE
    from eastgate.mesh.loglines import observed, record_in
    from eastgate.mesh.telling import Repeats
    from eastgate.questions import QuestionError

    written = [line for line in text.splitlines() if line.strip()]
    found: list[tuple[str, Observed]] = []
    problems: list[Diagnostic] = []
    repeats = Repeats()
    for line in written:
        try:
            seen = observed(record_in(line), line)
        except QuestionError as error:
            problems.append(error.diagnostic)
            continue
        if not repeats.is_one(seen):
            found.append((line, seen))
    if not written:
        way_out = "give a line, or pipe a proxy's log into `eastgate why -`"
        fail([Diagnostic(NOT_A_LOG_LINE, "there is no line to explain", None, way_out)], output)
    if not found:
        fail(problems[:1], output)
    return found, len(written) - len(found)


def _by_mesh(name: str, output: str) -> _Explain:
    def explain(line: str, _seen: Observed) -> tuple[dict[str, Any], str]:
        answer = ask(name, "why", output, line=line, color=colored())
        return answer["why"], answer["text"]

    return explain


def _by_files(files: tuple[str, ...], settings: Settings, local: bool, follow: bool, output: str) -> _Explain:
    """`local`: the lines are of a mesh on a laptop, where the network of the cluster is on loopback addresses."""
    from eastgate.analysis.explain import explain as explained
    from eastgate.mesh.mesh import mesh_settings
    from eastgate.mesh.why import why as reason
    from eastgate.questions import QuestionError

    chosen = mesh_settings(settings, IPv4Network("127.0.0.0/8")) if local else settings
    authority = load_authority(files, chosen, output, follow=follow)
    warn(authority.warnings)

    def rendered(decision: Decision, color: bool) -> str:
        return explained(decision, color=color)

    def explain(_line: str, seen: Observed) -> tuple[dict[str, Any], str]:
        try:
            found = reason(seen, authority)
        except QuestionError as error:
            fail([error.diagnostic], output)
        return found.to_json(rendered), found.text(rendered, color=colored())

    return explain
