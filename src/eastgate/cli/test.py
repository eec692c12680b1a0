"""`test`: decision tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.records import dataclass
from eastgate.cli.options import (
    SEEN_SIDECARS,
    Sources,
    cluster_options,
    cluster_path,
    follow_option,
    handling_of,
    helm_options,
    record,
    settings_from,
    strict_option,
    unread_option,
)
from eastgate.cli.output import UNDECIDED, colored, emit, emit_json, output_option, print_lines, warn
from eastgate.cli.progress import progress
from eastgate.reports.tables import read_tables, run_tables
from eastgate.reports.tables.model import Table
from eastgate.reports.tables.report import junit, text, to_json

if TYPE_CHECKING:
    from eastgate.reading.repository import RepositoryOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """The tables to run, and the cluster that they may test."""

    paths: tuple[str, ...]
    files: tuple[str, ...]
    config: str | None
    cluster: bool
    kubeconfig: str | None
    context: str | None
    namespace: str | None
    follow: bool
    unread: str | None
    helm: str | None
    helm_values: tuple[str, ...]

    def read(self) -> tuple[list[Table], Reporter]:
        """Return the tables, and the errors of their files."""
        paths = (*self.files, *self.paths)
        if not paths:
            raise click.UsageError("no tables: give files or folders")
        live = cluster_path(self.cluster, self.kubeconfig, self.context, self.namespace)
        settings = settings_from(() if live is None else (SEEN_SIDECARS,), self.config)
        return read_tables(paths, settings, follow=self.follow, unread=handling_of(self.unread), cluster=live)

    @property
    def repository(self) -> RepositoryOptions | None:
        """Return the options for building the environments that tables name."""
        return Sources(helm=self.helm, helm_values=self.helm_values).repository


_tables = record(
    "tables",
    _Tables,
    click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path()),
    click.option(
        "-f",
        "--filename",
        "files",
        multiple=True,
        metavar="PATH",
        type=click.Path(),
        help="File or folder with tables and invariants; the same as PATH.",
    ),
    click.option(
        "--config", type=click.Path(dir_okay=False), help="File with settings. The settings of a table override them."
    ),
    *cluster_options,
    click.option("-n", "--namespace", metavar="NS", help="With --cluster, read only this namespace."),
    follow_option,
    unread_option,
    *helm_options,
)


@click.command(epilog="Exits with 0 if all pass, 1 if any fails (or coverage is too low), 2 if a table cannot be read.")
@_tables
@output_option("text", "json", "junit", about="Format of the results.")
@click.option("--junit", "junit_file", type=click.Path(dir_okay=False), help="Also write JUnit XML to this file.")
@click.option("--coverage", is_flag=True, help="List the rules that no case exercises.")
@click.option(
    "--fail-under",
    type=click.FloatRange(0, 100),
    help="Fail if the cases exercise a smaller share of the rules, in percent.",
)
@strict_option
@click.option("-v", "--verbose", is_flag=True, help="Show passing cases too.")
def test(
    tables: _Tables,
    output: str,
    junit_file: str | None,
    coverage: bool,
    fail_under: float | None,
    strict: bool,
    verbose: bool,
) -> None:
    """Run decision tables and invariants.

    PATH... are files, or folders with files, that contain DecisionTest and Invariant documents.
    """
    documents, reporter = tables.read()
    covered = coverage or fail_under is not None
    with progress("deciding") as on_case:
        run = run_tables(documents, coverage=covered, strict=strict, on_case=on_case, repository=tables.repository)
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
                print_lines(line)
    if reporter.errors:
        sys.exit(UNDECIDED)
    too_low = fail_under is not None and run.coverage is not None and run.coverage.percent < fail_under
    sys.exit(1 if run.failed or too_low else 0)
