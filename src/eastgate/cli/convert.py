"""`convert`: policies in the form of another API, with the losses of the conversion."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NoReturn

import click

from eastgate.authority.reading import ManifestError, Manifests
from eastgate.basics.diagnostics.printable import printable
from eastgate.cli.environments import Task, answer_all, each_environment
from eastgate.cli.options import Sources, cluster_options, more_files, source_options
from eastgate.cli.output import PARTIAL, UNDECIDED, emit, emit_json, fail, output_option, print_lines, warn
from eastgate.cli.unconsidered import print_notes
from eastgate.cluster.unread import Handling, Unread, describe_unread, diagnose_unread, is_policy_like, list_left_out
from eastgate.convert import KINDS, Assumption, Conversion, Options
from eastgate.convert import convert as convert_documents
from eastgate.convert.run import as_json, as_yaml
from eastgate.reading.manifests import Document
from eastgate.settings import Settings, Sidecars

if TYPE_CHECKING:
    from eastgate.reports.diff import DiffReport

_HAS_LOSSES = 1
_FOUND_COUNTEREXAMPLE = 4
_EPILOG = (
    "Exits with 0 if nothing was lost, 1 if the conversion has losses, 2 if the manifests cannot be read, "
    "3 if nothing was lost, but some policies are of unread kinds, or --verify could not prove it or had "
    "nothing to verify, "
    "4 if --verify found a request whose verdict changes, and no loss explains it."
)


@click.command(epilog=_EPILOG)
@click.option("--to", required=True, type=click.Choice(list(KINDS)), metavar="KIND", help=f"One of {', '.join(KINDS)}.")
@source_options(more_files, *cluster_options)
@output_option("yaml", "json", about="Format of the manifests.")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    help="Write one file for each input file to this folder. Each of several environments has a subfolder.",
)
@click.option("--strict", is_flag=True, help="Write nothing if the conversion has losses.")
@click.option(
    "--assume",
    "assumed",
    multiple=True,
    type=click.Choice(list(map(str, Assumption))),
    metavar="NAME",
    help=f"Fact about the mesh that no manifest states: {', '.join(map(str, Assumption))}.",
)
@click.option(
    "--verify",
    "verified",
    is_flag=True,
    help="Prove that no request changes its verdict, except by the losses, or show a counterexample.",
)
def convert(
    to: str,
    sources: Sources,
    output: str,
    out: str | None,
    strict: bool,
    assumed: tuple[str, ...],
    verified: bool,
) -> None:
    """Write policies in the form of another API.

    Eastgate lists the parts that the API cannot express. A converted policy never allows more than the original.
    """
    _ = sources.required_paths
    options = Options(frozenset(Assumption(name) for name in assumed))
    each = each_environment(sources)
    if len(each) == 1:
        _convert(each[0].settled, to, output, Path(out) if out is not None else None, strict, options, verified)
    else:
        tasks = [
            Task(
                str(one.name),
                partial(_convert, one.sources, to, output, _folder(out, one.name), strict, options, verified),
            )
            for one in each
        ]
        answer_all(
            tasks, output="json" if output == "json" else "whole", strict=strict, diagnostics=each[0].diagnostics
        )


def _folder(out: str | None, environment: str | None) -> Path | None:
    """Return the folder for the files of one of several environments."""
    return Path(out, environment or "") if out is not None else None


def _convert(
    sources: Sources, to: str, output: str, out: Path | None, strict: bool, options: Options, verified: bool
) -> NoReturn:
    # The policies are converted by their meaning, even if nothing enforces them.
    settings = replace(sources.settings(), sidecars=Sidecars.ASSUMED)
    reading = sources.documents(settings)
    manifests, conversion = convert_documents(reading, to, settings, options)
    if manifests.reporter.errors:
        fail(manifests.reporter)
    if sources.unread is Handling.ERROR and manifests.unread.objects:
        fail(diagnose_unread(manifests.unread.objects, Handling.ERROR))
    if sources.verbose:
        print_lines(f"read {len(manifests.policies)} policies, wrote {len(conversion.written)} manifests", err=True)
    refused = strict and bool(conversion.losses)
    if out is not None and not refused:
        _write_files(conversion, out, output)
    every = manifests.unread.objects
    left_out = [unread for unread in every if sources.unread is not Handling.IGNORE or unread.part is not None]
    is_verified = verified and not conversion.is_empty
    report = _verify(manifests, reading.documents, conversion, settings, options) if is_verified else None
    if report is not None:
        report = replace(report, source=sources.arguments())
    _say(conversion, output, left_out, report, shown=out is None and not refused, verified=verified)
    if verified and conversion.is_empty:
        print_lines("nothing was converted, so that there is nothing to verify", err=True)
        sys.exit(_HAS_LOSSES if conversion.losses else PARTIAL)
    if report is not None and (status := _status(report, conversion)):
        sys.exit(status)
    is_partial = any(is_policy_like(unread) or unread.part is not None for unread in left_out)
    sys.exit(_HAS_LOSSES if conversion.losses else PARTIAL if is_partial else 0)


def _verify(
    manifests: Manifests,
    documents: Sequence[Document],
    conversion: Conversion,
    settings: Settings,
    options: Options,
) -> DiffReport:
    from eastgate.convert.verifying import can_verify, verify  # few conversions are verified
    from eastgate.reach.comparison import DoubtReason
    from eastgate.reports.diff import DiffReport, Unproven
    from eastgate.reports.diff.run import report_of

    if not can_verify(conversion):
        kinds = dict.fromkeys(f"{manifest['kind']}.{manifest['apiVersion']}" for manifest in conversion.manifests)
        return DiffReport((), tuple(Unproven(DoubtReason.UNREAD, kind) for kind in kinds), (), (), 0)
    try:
        return report_of(verify(manifests, documents, conversion, settings, options))
    except ManifestError as error:
        fail(error.diagnostics)


def _status(report: DiffReport, conversion: Conversion) -> int:
    """Return the exit status of a verification; 0 if the losses explain every changed verdict."""
    if report.wider or (report.changes and not conversion.losses):
        return _FOUND_COUNTEREXAMPLE
    return 0 if report.proven and report.common else PARTIAL


def _say_verified(report: DiffReport, conversion: Conversion) -> None:
    from eastgate.reports.diff.words import lines

    for line in lines(report):
        print_lines(line, err=True)
    if _status(report, conversion):
        print_lines("not verified", err=True)
    else:
        print_lines(
            "verified: all changed requests are denied now, as the losses explain" if report.changes else "verified",
            err=True,
        )


def _say(
    conversion: Conversion,
    output: str,
    left_out: Sequence[Unread],
    report: DiffReport | None,
    *,
    shown: bool,
    verified: bool,
) -> None:
    if output == "json":
        emit_json(
            {
                "converted": conversion.manifests if shown else [],
                "losses": [loss.to_json() for loss in conversion.losses],
                "notConverted": [_qualified_name(entry.kind, entry.namespace, entry.name) for entry in conversion.kept],
                "notRead": [str(entry) for entry in left_out],
                **({"verification": report.to_json() if report is not None else None} if verified else {}),
            }
        )
        return
    if shown and conversion.written:
        emit(as_yaml(conversion.manifests))
    warn(conversion.losses)
    if conversion.losses:
        lost, kept = len(conversion.losses), len(conversion.kept)
        words = f"{lost} loss{'' if lost == 1 else 'es'}"
        behind = (
            f"; {kept} polic{'y is' if kept == 1 else 'ies are'} not converted and must stay in force" if kept else ""
        )
        print_lines(f"{words}{behind}", err=True)
    print_notes(list_left_out(left_out), err=True)
    print_notes(describe_unread(left_out), err=True)
    if report is not None:
        _say_verified(report, conversion)


def _qualified_name(kind: str, namespace: str | None, name: str) -> str:
    return "/".join(part for part in (kind, namespace, name) if part)


def _write_files(conversion: Conversion, folder: Path, output: str) -> None:
    """Write one output file for each input file. Files of one name in different folders get numbers."""
    by_file: dict[str, list[dict[str, object]]] = {}
    for converted in conversion.written:
        by_file.setdefault(converted.document.span.file, []).append(dict(converted.manifest))
    folder.mkdir(parents=True, exist_ok=True)
    names = _file_names(list(by_file), output)
    render = as_json if output == "json" else as_yaml
    for file, name in names.items():
        try:
            (folder / name).write_text(render(by_file[file]), encoding="utf-8")  # type: ignore[arg-type] # plain data
        except OSError as error:
            print_lines(printable(f"cannot write {folder / name}: {error.strerror}"), err=True)
            sys.exit(UNDECIDED)


def _file_names(files: Sequence[str], output: str) -> dict[str, str]:
    taken: set[str] = set()
    names: dict[str, str] = {}
    for file in files:
        stem = PurePath(file).stem.strip("<>") or "manifests"
        name, number = f"{stem}.{output}", 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}.{output}"
        taken.add(name)
        names[file] = name
    return names
