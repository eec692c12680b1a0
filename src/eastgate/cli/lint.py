"""`lint`: what is understood and probably not meant so."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import click

from eastgate.api.authority import Authority
from eastgate.api.reading import Manifests, read_manifests
from eastgate.cli.options import cluster_arguments, left_out, manifest_options, settings_from
from eastgate.cli.output import UNDECIDED, colored, emit, emit_json, say
from eastgate.cli.progress import progress
from eastgate.cli.unconsidered import handling_of, unread_option
from eastgate.diagnostics import Severity
from eastgate.manifests import Bounds
from eastgate.reports.lint import Finding
from eastgate.reports.lint import lint as find
from eastgate.reports.lint.report import counted, github, to_json
from eastgate.reports.lint.sarif import sarif
from eastgate.unread.codes import UNREAD_POLICY

__all__ = ["lint"]

_THRESHOLDS = {
    "error": (Severity.ERROR,),
    "warning": (Severity.ERROR, Severity.WARNING),
    "info": tuple(Severity),
    "never": (),
}
_EXIT = (
    "Exits with 0 if there is no finding of the severity of --fail-on or worse, 1 if there is, "
    "2 if the manifests could not be read, or have policies of kinds that are not read."
)


@click.command(epilog=_EXIT)
@manifest_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "sarif", "github"]),
    default="text",
    show_default=True,
    help="Form of the findings; github is for annotations of a workflow.",
)
@click.option(
    "--fail-on",
    type=click.Choice(list(_THRESHOLDS)),
    default="warning",
    show_default=True,
    help="The severity from which on the exit status is 1.",
)
@unread_option
@click.option("--select", multiple=True, metavar="CODE", help="Only codes that begin so; may be repeated.")
@click.option("--ignore", multiple=True, metavar="CODE", help="No codes that begin so; may be repeated.")
def lint(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    settings: tuple[str, ...],
    config: str | None,
    follow: bool,
    exclude: tuple[str, ...],
    verbose: bool,
    output: str,
    fail_on: str,
    unread: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
) -> None:
    """Find rules without effect, targets that select nothing, workloads that nothing can reach, and the like."""
    paths = (*files, *more_files)
    if not paths:
        raise click.UsageError("no manifests: give files or folders with -f, or --cluster")
    chosen, dropped = _prefixes(select, "--select"), _prefixes(ignore, "--ignore")
    rules = settings_from(settings, config, "json" if output == "json" else "text")
    with progress("reading manifests") as on_file:
        bounds = Bounds.of(paths, follow=follow, exclude=exclude)
        manifests = read_manifests(paths, rules, stdin=sys.stdin.buffer, on_file=on_file, bounds=bounds)
    if verbose:
        say(f"read {len(manifests.objects)} objects and {len(manifests.policies)} policies", err=True)
    if manifests.reporter.errors:
        _emit(_read_only(manifests), output, manifests.excluded)
        sys.exit(UNDECIDED)
    findings = find(Authority(manifests, rules, unread=handling_of(unread)), manifests, cluster_arguments(paths))
    shown = [
        finding
        for finding in findings
        if (finding.code.id.startswith(chosen or ("",)) and not finding.code.id.startswith(dropped))
        or finding.code is UNREAD_POLICY
    ]
    _emit(shown, output, manifests.excluded)
    if any(finding.code is UNREAD_POLICY for finding in shown):
        sys.exit(UNDECIDED)
    sys.exit(1 if any(finding.severity in _THRESHOLDS[fail_on] for finding in shown) else 0)


def _prefixes(values: Sequence[str], option: str) -> tuple[str, ...]:
    """Read codes, or the beginnings of codes, separated by commas too."""
    prefixes = tuple(part.strip().upper() for value in values for part in value.split(",") if part.strip())
    for prefix in prefixes:
        if not re.fullmatch(r"E(G\d{0,4})?", prefix):
            raise click.BadParameter(
                f"`{prefix}` is not a code such as EG6003, or the beginning of one", param_hint=option
            )
    return prefixes


def _read_only(manifests: Manifests) -> list[Finding]:
    """Return what is wrong with manifests that cannot be understood: they are not looked at further."""
    return sorted(
        (Finding.of(diagnostic) for diagnostic in manifests.reporter), key=lambda diagnostic: diagnostic.sort_key
    )


def _emit(findings: Sequence[Finding], output: str, excluded: int) -> None:
    match output:
        case "json":
            emit_json({**to_json(findings), "excluded": excluded})
        case "sarif":
            emit_json(sarif(findings))
        case "github":
            for line in github(findings):
                emit(line + "\n")
        case _:
            for finding in findings:
                say(finding.render(color=colored()) + "\n")
            say(counted(findings) + left_out(excluded))
