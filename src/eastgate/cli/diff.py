"""`diff`: which requests change their verdict between two sets of policies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import replace
from pathlib import Path

import click

from eastgate.authority.authority import Authority
from eastgate.authority.reading import DocumentSource, ManifestError, Manifests, read_manifests
from eastgate.basics.diagnostics import Diagnostic, did_you_mean
from eastgate.basics.records import dataclass
from eastgate.cli.crds import RevisionsError, checked_out, revisions_of
from eastgate.cli.options import (
    BAD_OPTION,
    Sources,
    bad_option,
    cluster_options,
    more_files,
    source_options,
    strict_option,
)
from eastgate.cli.output import colored, emit, emit_json, fail, output_option, say, warn
from eastgate.cluster.unread import Handling, diagnose_unread
from eastgate.reports.diff import DiffReport
from eastgate.reports.diff import diff as compare
from eastgate.reports.diff.model import FailOn
from eastgate.reports.diff.words import lines
from eastgate.settings import Settings

_EXIT = (
    "Exits with 0 if no request changes its verdict (or none in the way of --fail-on), 1 if some do, "
    "2 if something cannot be read, 3 if no change was found and it is not proven that there is none, or if there is "
    "nothing to compare."
)


@click.command(epilog=_EXIT)
@source_options(more_files, *cluster_options, strict_option)
@click.option(
    "--git",
    metavar="A..B",
    help="Compare two revisions of PATH...; A...B: what B adds since it left A; A alone: with the files as they are.",
)
@click.option(
    "--with",
    "added",
    multiple=True,
    metavar="PATH",
    type=click.Path(allow_dash=True),
    help="Add these manifests, or replace those of the same names, and compare.",
)
@click.option(
    "--without",
    "removed",
    multiple=True,
    metavar="KIND/NS/NAME",
    help="Remove this object, and compare.",
)
@output_option(
    *("text", "json", "markdown", "sarif", "github"),
    about="Form of the changes; github is for annotations of a workflow, markdown for a comment.",
)
@click.option(
    "--fail-on",
    type=click.Choice([choice.value for choice in FailOn]),
    default="any",
    show_default=True,
    help="The changes for which the exit status is 1: those to allow, those to deny, or any.",
)
def diff(
    sources: Sources, git: str | None, added: tuple[str, ...], removed: tuple[str, ...], output: str, fail_on: str
) -> None:
    """Show which requests change their verdict.

    PATH... are the folders OLD and NEW, or one folder with --git, --with or --without. If no request changes its
    verdict, Eastgate proves it. Policies without any workload are compared on invented ones.
    """
    reading = _Reading(replace(sources, unread=Handling.IGNORE), sources.settings())
    named, more, paths = sources.named, sources.more, sources.paths
    if git is not None and (added or removed):
        raise click.UsageError("--git compares revisions: --with and --without are for files as they are")
    if git is not None:
        old, new = _revisions(reading, git, paths)
    elif clusters := [path for path in named if isinstance(path, DocumentSource)]:
        applied = [path for path in paths if not isinstance(path, DocumentSource)]
        paths = tuple(clusters)
        old, new = _what_if(reading, clusters, [*applied, *added], removed)
    elif added or removed:
        old, new = _what_if(reading, paths, added, removed)
    elif named or len(more) != 2:
        words = (
            "give OLD and NEW; or --git A..B PATH...; or -f PATH... with --with or --without; or --cluster -f PATH..."
        )
        raise click.UsageError(words)
    elif more == ("-", "-"):
        raise click.UsageError("only one of OLD and NEW can be standard input")
    else:
        old, new = (reading.load([path]) for path in more)
    if sources.unread is Handling.ERROR:
        _refuse_unread(old, new)
    warn([*new.warnings, *new.notices(), *(error for rejected in new.rejected for error in rejected.errors)])
    # Nothing but the change itself says what `new` has of a change that is only tried: what there is can be asked
    asked = paths if git is not None or added or removed or named else more[1:]
    report = compare(old, new, unread=sources.unread is not Handling.IGNORE)
    report = replace(report, source=sources.arguments(asked))
    _emit(report, output)
    sys.exit(report.status(FailOn(fail_on)))


@dataclass(frozen=True, slots=True)
class _Reading:
    """How manifests are read, the same for both sides.

    What `--unread` means for a comparison is not what it means for an answer, so that here it is to ignore them.
    """

    sources: Sources
    settings: Settings

    def load(self, paths: Sequence[str | os.PathLike[str]]) -> Authority:
        return self.sources.of_paths(*paths).authority(self.settings)

    def read(self, paths: Sequence[str | os.PathLike[str]]) -> Manifests:
        return self.sources.of_paths(*paths).manifests(self.settings)

    def authority(self, manifests: Manifests) -> Authority:
        try:
            return Authority(manifests, self.settings, strict=self.sources.strict, unread=Handling.IGNORE)
        except ManifestError:
            fail(manifests.reporter)

    def nothing(self) -> Authority:
        return Authority(read_manifests([], self.settings), self.settings, unread=Handling.IGNORE)


def _refuse_unread(old: Authority, new: Authority) -> None:
    objects = [*old.unread_objects.objects, *new.unread_objects.objects]
    if objects:
        fail(diagnose_unread(objects, Handling.ERROR))


# Revisions


def _revisions(reading: _Reading, words: str, paths: Sequence[str | os.PathLike[str]]) -> tuple[Authority, Authority]:
    if not paths:
        raise click.UsageError("give the files or folders to compare: --git A..B PATH...")
    if any(Path(path).is_absolute() or os.fspath(path) == "-" for path in paths):
        raise click.UsageError("paths in a repository are relative to the current folder")
    try:
        revisions = revisions_of(words)
        with _folder(revisions.old):
            old = _load_there(reading, paths)
        with _folder(revisions.new):
            new = _load_there(reading, paths)
    except RevisionsError as error:
        fail([error.diagnostic])
    if old is None and new is None:
        bad_option(f"neither side has {', '.join(str(Path(path)) for path in paths)}")
    return old or reading.nothing(), new or reading.nothing()


@contextmanager
def _folder(commit: str | None) -> Iterator[None]:
    """Make the files of a commit those of the current folder, so that they have the names that they always have."""
    if commit is None:
        yield
        return
    with checked_out(commit) as folder, chdir(folder):
        yield


def _load_there(reading: _Reading, paths: Sequence[str | os.PathLike[str]]) -> Authority | None:
    """Return what is there of some paths; None where nothing is: they were added, or removed."""
    there = [path for path in paths if Path(path).exists()]
    return reading.load(there) if there else None


# What if


def _what_if(
    reading: _Reading,
    paths: Sequence[str | os.PathLike[str]],
    added: Sequence[str | os.PathLike[str]],
    removed: Sequence[str],
) -> tuple[Authority, Authority]:
    """Return what there is, and the same with a change: as `kubectl apply` of `added` would make it."""
    if "-" in paths:
        raise click.UsageError("with --with and --without, -f is for files: give those instead of -")
    manifests = reading.read(paths)
    old, new = reading.authority(manifests), reading.authority(manifests)
    names = [str(policy.ref) for policy in new.policies] + list(map(str, new.world.objects))
    names += list(map(str, new.unread_objects.objects))
    unknown = [name for name in removed if name not in names]
    if unknown:
        fail([_not_there(name, names) for name in unknown])
    news = reading.read(added) if added else None
    if news is not None and news.reporter.errors:
        fail(news.reporter)
    try:
        new.update(news if news is not None else (), removed)
    except ManifestError as error:
        fail(error.diagnostics)
    return old, new


def _not_there(name: str, names: Sequence[str]) -> Diagnostic:
    near = did_you_mean(name, names)
    help_text = f"did you mean {near}?" if near else "write --without Kind/namespace/name, or Kind/name"
    return Diagnostic(BAD_OPTION, f"there is no {name}", None, help_text)


# Output


def _emit(report: DiffReport, output: str) -> None:
    match output:
        case "json":
            emit_json(report.to_json())
        case "markdown":
            from eastgate.reports.diff.words import markdown

            emit(markdown(report))
        case "sarif":
            from eastgate.reports.diff.words import diff_codes, findings
            from eastgate.reports.lint.sarif import sarif

            emit_json(sarif(findings(report), diff_codes()))
        case "github":
            from eastgate.reports.diff.words import findings
            from eastgate.reports.lint.report import github

            for line in github(findings(report)):
                emit(line + "\n")
        case _:
            for line in lines(report):
                say(_painted(line))


def _painted(line: str) -> str:
    for start, color in (("now allowed:", "yellow"), ("now denied:", "red"), ("not proven:", "magenta")):
        if colored() and line.startswith(start):
            return click.style(start, fg=color, bold=True) + line.removeprefix(start)
    return line
