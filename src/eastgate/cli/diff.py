"""`diff`: which requests change their verdict between two sets of policies."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, chdir
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from eastgate.authority.authority import Authority
from eastgate.authority.reading import DocumentSource, ManifestError, read_manifests
from eastgate.basics.diagnostics import Diagnostic, did_you_mean
from eastgate.basics.records import dataclass
from eastgate.cli import complete
from eastgate.cli.crds import RevisionsError, checked_out, revisions_of
from eastgate.cli.environments import EnvironmentSources, Task, answer_all, each_environment, only
from eastgate.cli.options import (
    BAD_OPTION,
    Sources,
    bad_option,
    cluster_options,
    more_files,
    source_options,
    strict_option,
)
from eastgate.cli.output import (
    DENIED,
    PARTIAL,
    colored,
    conclude,
    emit,
    emit_json,
    fail,
    mark_absent,
    output_option,
    print_lines,
    warn,
)
from eastgate.cluster.unread import Handling, diagnose_unread
from eastgate.reports.diff import DiffReport
from eastgate.reports.diff import diff as compare
from eastgate.reports.diff.model import FailOn
from eastgate.reports.diff.words import lines
from eastgate.settings import Settings

_EXIT = (
    "Exits with 0 if no request changes its verdict (or not in the direction of --fail-on), 1 if a request does, "
    "2 if an input cannot be read, 3 if no change was found but the absence of changes is not proven, or if there is "
    "nothing to compare."
)


@click.command(epilog=_EXIT)
@source_options(more_files, *cluster_options, strict_option)
@click.option(
    "--git",
    metavar="A..B",
    help="Compare revision A of PATH... with B. A...B: compare the merge base of A and B with B. A: compare A with the "
    "current files.",
)
@click.option(
    "--between",
    nargs=2,
    metavar="OLD NEW",
    shell_complete=complete.environments,
    help="Compare two environments of PATH...",
)
@click.option(
    "--with",
    "added",
    multiple=True,
    metavar="PATH",
    type=click.Path(allow_dash=True),
    help="Compare with these manifests added, or in place of those of the same names.",
)
@click.option(
    "--without",
    "removed",
    multiple=True,
    metavar="KIND/NS/NAME",
    help="Compare without this object.",
)
@output_option(
    *("text", "json", "markdown", "sarif", "github"),
    about="Format of the changes; github: annotations of a workflow, markdown: a comment.",
)
@click.option(
    "--fail-on",
    type=click.Choice([choice.value for choice in FailOn]),
    default="any",
    show_default=True,
    help="Exit with 1 for these changes: wider (to allow), narrower (to deny), or any.",
)
def diff(
    sources: Sources,
    git: str | None,
    between: tuple[str, str] | None,
    added: tuple[str, ...],
    removed: tuple[str, ...],
    output: str,
    fail_on: str,
) -> None:
    """Show which requests change their verdict.

    PATH... are the folders OLD and NEW, or one folder with --git, --between, --with or --without. If no request changes
    its verdict, Eastgate proves it. Environments with the same name in OLD and NEW are compared. Policies without
    workloads are compared on generated workloads.
    """
    if between is not None and (git is not None or added or removed):
        raise click.UsageError("--between compares environments as they are: leave out --git, --with and --without")
    if git is not None and (added or removed):
        raise click.UsageError("--git compares revisions: --with and --without are for files as they are")
    settings = sources.settings()
    comparing = _PairReport(sources.unread, output, FailOn(fail_on))
    with ExitStack() as folders:
        pairs = list(_pairs(sources, settings, _DiffOptions(git, between, added, removed), folders))
        if len(pairs) == 1 and pairs[0].name is None:
            if any(finding.is_error for finding in pairs[0].diagnostics):
                fail(pairs[0].diagnostics)
            warn(pairs[0].diagnostics)
            comparing.show(pairs[0])
        tasks = [Task(pair.name or "", partial(comparing.show, pair)) for pair in pairs]
        answer_all(tasks, output=output, strict=sources.strict, diagnostics=pairs[0].diagnostics, decisive=DENIED)


@dataclass(frozen=True, slots=True)
class _DiffOptions:
    """The options that select the two sides."""

    git: str | None
    between: tuple[str, str] | None
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two sides to compare, each read on first use; None: that side has no such environment.

    `name` is that of the environment, if there are several. `asked` are the arguments of commands that read the new
    side, or the closest sources that exist.
    """

    name: str | None
    load: Callable[[], tuple[Authority, Authority]] | None
    asked: tuple[str, ...] = ()
    side: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class _PairReport:
    """The treatment of unread objects in a comparison, and the form of its report."""

    unread: Handling
    output: str
    fail_on: FailOn

    def show(self, pair: _Pair) -> NoReturn:
        """Show one comparison, and exit."""
        if pair.load is None:
            self._show_single(pair)
        old, new = pair.load()
        if self.unread is Handling.ERROR:
            _refuse_unread(old, new)
        warn([*new.warnings, *new.notices(), *(error for rejected in new.rejected for error in rejected.errors)])
        report = compare(old, new, unread=self.unread is not Handling.IGNORE)
        report = replace(report, source=pair.asked)
        conclude(_in_short(report))
        _emit(report, self.output)
        sys.exit(report.status(self.fail_on))

    def _show_single(self, pair: _Pair) -> NoReturn:
        """Show an environment that only one side has. There is no proof about it."""
        conclude(f"only in {pair.side}:")
        if self.output == "json":
            emit_json({"equal": False, "proven": False, "only": pair.side.lower()})
        sys.exit(PARTIAL)


def _in_short(report: DiffReport) -> str:
    if report.changes:
        return "changes"
    if not report.proven:
        return "not proven"
    return "no change" if report.common else "nothing to compare"


def _pairs(sources: Sources, settings: Settings, asked: _DiffOptions, folders: ExitStack) -> Iterator[_Pair]:
    """Yield the pairs to compare. Revisions stay checked out until `folders` is closed."""
    named, more, paths = sources.named, sources.more, sources.paths
    if asked.between is not None:
        yield _between(sources, settings, asked.between)
    elif asked.git is not None:
        yield from _revisions(sources, settings, asked.git, folders)
    elif clusters := [path for path in named if isinstance(path, DocumentSource)]:
        applied = [path for path in paths if not isinstance(path, DocumentSource)]
        cluster = sources.of_paths(*clusters)
        change = _Change(sources.of_paths(*applied, *asked.added), asked.removed)
        # No files have the new side of a change that is only tried, so that the report names the sources of the old
        # side
        yield _Pair(None, partial(_what_if, cluster, change, settings), cluster.arguments())
    elif asked.added or asked.removed:
        change = _Change(replace(sources.of_paths(*asked.added), environments=()), asked.removed)
        for one in each_environment(sources):
            load = partial(_what_if, one.sources, change, settings)
            yield _Pair(one.name, load, one.sources.arguments(), diagnostics=one.diagnostics)
    elif named or len(more) != 2:
        words = (
            "give OLD and NEW; or --git A..B PATH...; or -f PATH... with --between, --with or --without; "
            "or --cluster -f PATH..."
        )
        raise click.UsageError(words)
    elif more == ("-", "-"):
        raise click.UsageError("only one of OLD and NEW can be standard input")
    else:
        old, new = (_Side(each_environment(sources.of_paths(path))) for path in more)
        yield from _matched(old, new, settings)


def _between(sources: Sources, settings: Settings, names: tuple[str, str]) -> _Pair:
    """Return two environments of the same paths."""
    _ = sources.required_paths
    old, new = (only(replace(sources, environments=(name,)), "name one") for name in names)
    return _Pair(None, lambda: (_load(old, settings), _load(new, settings)), new.arguments())


def _load(sources: Sources, settings: Settings) -> Authority:
    """Read one side. A comparison handles `--unread` itself, for both sides."""
    return replace(sources, unread=Handling.IGNORE).authority(settings)


def _refuse_unread(old: Authority, new: Authority) -> None:
    objects = [*old.unread_objects.objects, *new.unread_objects.objects]
    if objects:
        fail(diagnose_unread(objects, Handling.ERROR))


# Two sides, with the environments of each


@dataclass(frozen=True, slots=True)
class _Side:
    """The environments of one side; none if the paths do not exist there. They are read in the folder."""

    environments: list[EnvironmentSources]
    folder: str | os.PathLike[str] = os.curdir

    def named(self) -> dict[str, Sources]:
        """Return the sources of each environment by its name."""
        named = {}
        for one in self.environments:
            found = one.sources.found
            named[one.name or (found[0].name if found else "")] = one.sources
        return named

    def load(self, sources: Sources | None, settings: Settings) -> Authority:
        """Read one of the environments; without environments, the side is empty."""
        if sources is None:
            return Authority(read_manifests([], settings), settings, unread=Handling.IGNORE)
        with chdir(self.folder):
            return _load(sources, settings)


def _matched(old: _Side, new: _Side, settings: Settings, asked: tuple[str, ...] | None = None) -> Iterator[_Pair]:
    """Yield the environments of the same name. If both sides have at most one, they are compared under any name."""
    diagnostics = tuple(finding for side in (old, new) for one in side.environments[:1] for finding in one.diagnostics)
    if max(len(old.environments), len(new.environments)) == 1:
        before, after = (next((one.sources for one in side.environments), None) for side in (old, new))
        arguments = asked if asked is not None or after is None else after.arguments()
        yield _Pair(
            None,
            lambda: (old.load(before, settings), new.load(after, settings)),
            arguments or (),
            diagnostics=diagnostics,
        )
        return
    olds, news = old.named(), new.named()

    def load(name: str) -> tuple[Authority, Authority]:
        return old.load(olds[name], settings), new.load(news[name], settings)

    for name in dict.fromkeys((*olds, *news)):
        if name in olds and name in news:
            yield _Pair(name, partial(load, name), news[name].arguments(), diagnostics=diagnostics)
        else:
            yield _Pair(name, None, side="OLD" if name in olds else "NEW", diagnostics=diagnostics)


def _revisions(sources: Sources, settings: Settings, words: str, folders: ExitStack) -> Iterator[_Pair]:
    paths = sources.paths
    if not paths:
        raise click.UsageError("give the files or folders to compare: --git A..B PATH...")
    if any(Path(path).is_absolute() or os.fspath(path) == "-" for path in paths):
        raise click.UsageError("paths in a repository are relative to the current folder")
    try:
        revisions = revisions_of(words)
        old = _side_of(revisions.old, sources, folders)
        new = _side_of(revisions.new, sources, folders)
    except RevisionsError as error:
        fail([error.diagnostic])
    if not old.environments and not new.environments:
        bad_option(f"neither side has {', '.join(str(Path(path)) for path in paths)}")
    yield from _matched(old, new, settings, sources.arguments())


def _side_of(commit: str | None, sources: Sources, folders: ExitStack) -> _Side:
    """Return the side of the paths in a commit; with None, in the current files.

    The files are read with their folder as the current one, so that they have the same names on both sides.
    """
    folder = Path(os.curdir) if commit is None else folders.enter_context(checked_out(commit))
    with chdir(folder):
        there = [path for path in sources.paths if Path(path).exists()]
        return _Side(each_environment(sources.of_paths(*there)) if there else [], folder)


# What-if


@dataclass(frozen=True, slots=True)
class _Change:
    """A tried change: manifests to add or replace, and names of objects to remove."""

    added: Sources
    removed: Sequence[str]


def _what_if(sources: Sources, change: _Change, settings: Settings) -> tuple[Authority, Authority]:
    """Return the current state, and the state after a change: as `kubectl apply` would make it."""
    if "-" in sources.paths:
        raise click.UsageError("with --with and --without, -f is for files: give those instead of -")
    manifests = sources.manifests(settings)
    reading = replace(sources, unread=Handling.IGNORE)
    old, new = (reading.authority_on(manifests) for _ in range(2))
    names = [str(policy.ref) for policy in new.policies] + list(map(str, new.world.objects))
    names += list(map(str, new.unread_objects.objects))
    unknown = [name for name in change.removed if name not in names]
    if unknown:
        mark_absent()
        fail([_not_there(name, names) for name in unknown])
    news = only(change.added, "add one").manifests(settings) if change.added.paths else None
    if news is not None and news.reporter.errors:
        fail(news.reporter)
    try:
        new.update(news if news is not None else (), change.removed)
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
                print_lines(_painted(line))


def _painted(line: str) -> str:
    for start, color in (("now allowed:", "yellow"), ("now denied:", "red"), ("not proven:", "cyan")):
        if colored() and line.startswith(start):
            return click.style(start, fg=color, bold=True) + line.removeprefix(start)
    return line
