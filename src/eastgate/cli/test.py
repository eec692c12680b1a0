"""`test`: decision tables."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from eastgate.cli.options import (
    SEEN_SIDECARS,
    cluster_options,
    cluster_path,
    follow_option,
    settings_from,
    strict_option,
)
from eastgate.cli.output import UNDECIDED, colored, emit, emit_json, say, warn
from eastgate.cli.progress import progress
from eastgate.cli.unconsidered import handling_of, unread_option
from eastgate.reports.tables import read_tables, run_tables
from eastgate.reports.tables.report import junit, text, to_json


@click.command(epilog="Exits with 0 if all pass, 1 if any fails (or coverage is too low), 2 if a table cannot be read.")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="PATH",
    type=click.Path(),
    help="File or folder with tables and invariants; the same as PATH. May be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
    help="Format of the results.",
)
@click.option("--junit", "junit_file", type=click.Path(dir_okay=False), help="Also write JUnit XML to this file.")
@click.option("--coverage", is_flag=True, help="List the rules that no case exercises.")
@click.option(
    "--fail-under", type=click.FloatRange(0, 100), help="Fail if the cases exercise fewer percent of the rules."
)
@click.option(
    "--config", type=click.Path(dir_okay=False), help="File with settings. The settings of a table override them."
)
@cluster_options
@click.option("-n", "--namespace", metavar="NS", help="With --cluster: read only this namespace.")
@follow_option
@strict_option
@unread_option
@click.option("-v", "--verbose", is_flag=True, help="Show passing cases too.")
def test(
    paths: tuple[str, ...],
    files: tuple[str, ...],
    output: str,
    junit_file: str | None,
    coverage: bool,
    fail_under: float | None,
    config: str | None,
    cluster: bool,
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    follow: bool,
    strict: bool,
    unread: str | None,
    verbose: bool,
) -> None:
    """Run decision tables and invariants.

    PATH... are files, or folders with files, that contain DecisionTest and Invariant documents.
    """
    paths = (*files, *paths)
    if not paths:
        raise click.UsageError("no tables: give files or folders")
    live = cluster_path(cluster, kubeconfig, context, namespace)
    settings = settings_from(() if live is None else (SEEN_SIDECARS,), config, "json" if output == "json" else "text")
    tables, reporter = read_tables(paths, settings, follow=follow, unread=handling_of(unread), cluster=live)
    with progress("deciding") as on_case:
        run = run_tables(tables, coverage=coverage or fail_under is not None, strict=strict, on_case=on_case)
    run.diagnostics[:0] = reporter.diagnostics
    warn(run.diagnostics)
    if junit_file is not None:
        Path(junit_file).write_text(junit(run), encoding="utf-8")
    match output:
        case "json":
            emit_json(to_json(run))
        case "junit":
            emit(junit(run) + "\n")
        case _:
            for line in text(run, verbose=verbose, color=colored()):
                say(line)
    if reporter.errors:
        sys.exit(UNDECIDED)
    too_low = fail_under is not None and run.coverage is not None and run.coverage.percent < fail_under
    sys.exit(1 if run.failed or too_low else 0)
