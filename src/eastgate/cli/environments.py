"""One command for several environments: it runs for each of them, and equal output is written once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias

import click

from eastgate.authority.environments import deployments, several_environments
from eastgate.authority.reading import ManifestError
from eastgate.basics.collection import collect_if_needed, no_collection
from eastgate.basics.diagnostics import Diagnostic, Reporter, Severity, render_all
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cli.options import Sources
from eastgate.cli.output import (
    ALLOWED,
    DENIED,
    FROM_WHAT_WAS_READ,
    PARTIAL,
    UNDECIDED,
    EnvironmentAnswer,
    colored,
    emit,
    emit_json,
    emit_yaml,
    fail,
    print_lines,
    recorded,
    warn,
)
from eastgate.cli.progress import progress
from eastgate.reading.manifests.files import STDIN

_MAX_NAMES = 3
_MAX_TITLE_NAMES = 12  # environments in a heading
_MAX_PER_CODE = 5  # diagnostics of one code in full
_VERDICT_ORDER = ("DENY", "DEPENDS", "ALLOW")  # in the first line
_UNMERGEABLE_FORMATS = ("dot", "mermaid", "svg", "html", "csv", "whole")  # formats that cannot be merged


_DiagnosedEnvironments: TypeAlias = tuple[Diagnostic, list[str]]
"""A diagnostic, and the names of its environments."""


@dataclass(frozen=True, slots=True)
class EnvironmentSources:
    """The sources of one environment. `name` is None if it is the only one.

    `diagnostics` are about the files that declare environments, of all environments.
    """

    name: str | None
    sources: Sources
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def settled(self) -> Sources:
        """Return the sources of the only environment, and print the diagnostics. Exit if one is an error."""
        if any(diagnostic.is_error for diagnostic in self.diagnostics):
            fail(self.diagnostics)
        warn(self.diagnostics)
        return self.sources


def each_environment(sources: Sources) -> list[EnvironmentSources]:
    """Return the sources of each selected environment, or print why there is none and exit.

    A single environment has the name None: its answer has the form of a folder without environments.
    """
    if sources.deployment is not None or not sources.paths:
        return [EnvironmentSources(None, sources)]
    reporter = Reporter()
    try:
        found = deployments(sources.paths, sources.bounds, sources.environments, sources.repository, reporter)
    except ManifestError as error:
        fail(error.diagnostics)
    if len(found) == 1:
        only = found[0]
        names = sources.environments if only.name is None else (only.name,)
        chosen = replace(sources, deployment=only, environments=names)
        # A folder that is read as a whole reports its errors itself
        return [EnvironmentSources(None, chosen, () if only.paths == sources.paths else tuple(reporter))]
    stdin = sys.stdin.buffer.read() if STDIN in sources.paths else None
    diagnostics = tuple(reporter)
    return [
        EnvironmentSources(
            each.name, replace(sources, deployment=each, environments=(each.name,), stdin=stdin), diagnostics
        )
        for each in found
        if each.name is not None
    ]


@dataclass(frozen=True, slots=True)
class Task:
    """The work for one environment."""

    name: str
    answer: Callable[[], object]


def answer_each(sources: Sources, answer: Callable[[Sources], object], *, output: str = "text") -> None:
    """Answer for each environment of the sources, and exit if there are several."""
    each = each_environment(sources)
    if len(each) == 1:
        answer(each[0].settled)
    else:
        answer_all(
            [_task(one, answer) for one in each], output=output, strict=sources.strict, diagnostics=each[0].diagnostics
        )


def _task(one: EnvironmentSources, answer: Callable[[Sources], object]) -> Task:
    return Task(one.name or "", lambda: answer(one.sources))


def answer_all(
    tasks: Sequence[Task],
    *,
    output: str = "text",
    strict: bool = False,
    diagnostics: Sequence[Diagnostic] = (),
    decisive: int | None = None,
) -> NoReturn:
    """Write the answers of all tasks together, and exit. `diagnostics` are those of finding the environments.

    `decisive` is the exit status of one answer that becomes that of all, if every environment has an answer.
    """
    answers = record_all(tasks)
    notes, status = Notes.of(answers, diagnostics), status_of(answers.values(), strict=strict, decisive=decisive)
    if any(diagnostic.is_error for diagnostic in diagnostics) and status in (ALLOWED, DENIED):
        status = PARTIAL
    given = {name: answer for name, answer in answers.items() if not (answer.failures or answer.is_absent)}
    if output == "json":
        emit_json({"environments": {name: _data(answer) for name, answer in answers.items()}})
    elif output == "yaml":
        emit_yaml({"environments": {name: _data(answer) for name, answer in answers.items()}})
    elif output == "sarif":
        emit_json(_merge_sarif([answer.data[0] for answer in given.values() if answer.data]))
    elif output in ("name", "github"):
        for line in dict.fromkeys(line for answer in given.values() for line in answer.text):
            emit(line + "\n")
    elif output in _UNMERGEABLE_FORMATS:
        _write_whole(given)
    else:
        _write_text(answers, given, is_markdown=output == "markdown")
    if output not in ("json", "yaml"):
        _add_failures(answers, notes)
    notes.write()
    sys.exit(status)


def record_all(tasks: Sequence[Task]) -> dict[str, EnvironmentAnswer]:
    """Return the answer of each task by the name of its environment."""
    answers: dict[str, EnvironmentAnswer] = {}
    misused: list[click.UsageError] = []
    with no_collection(), progress("answering for each environment") as on_answer:
        for done, task in enumerate(tasks, 1):
            with recorded() as answer:
                try:
                    task.answer()
                except click.UsageError as error:  # such as a kind that only other environments have
                    misused.append(error)
                    answer.is_absent, answer.status = True, UNDECIDED
            answers[task.name] = answer
            collect_if_needed()
            if on_answer is not None:
                on_answer(done, len(tasks))
    if misused and len(misused) == len(tasks):
        raise misused[0]
    return answers


def status_of(answers: Iterable[EnvironmentAnswer], *, strict: bool = False, decisive: int | None = None) -> int:
    """Return the exit status of several answers.

    It is 2 if no environment gives an answer, and 3 if only some do. An environment without the object of the question
    counts only if none has it.
    """
    return combine((answer.status for answer in answers if not answer.is_absent), strict=strict, decisive=decisive)


def combine(several: Iterable[int], *, strict: bool = False, decisive: int | None = None) -> int:
    """Return the exit status for the statuses of several answers."""
    statuses = {*several} or {UNDECIDED}
    if statuses == {UNDECIDED} or (strict and UNDECIDED in statuses):
        return UNDECIDED
    if UNDECIDED in statuses:
        return PARTIAL
    if decisive in statuses:
        return decisive
    return max(statuses)


def only(sources: Sources, why: str) -> Sources:
    """Return the sources of the only environment. Print an error that lists the environments if there are several."""
    each = each_environment(sources)
    if len(each) > 1:
        fail([several_environments([one.name or "" for one in each], lambda name: f"{why}: --environment {name}")])
    return each[0].settled


def listed(names: Sequence[str], of: int, most: int = _MAX_NAMES) -> str:
    """Return the names of environments as text: `dev, prod and 3 more`, or the number of all."""
    if len(names) == of and of > most:
        return f"all {of} environments"
    shown = names if len(names) <= most + 1 else names[:most]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return printable(", ".join(shown)) + more


def grouped(answers: dict[str, EnvironmentAnswer]) -> Iterator[tuple[list[str], EnvironmentAnswer]]:
    """Yield the distinct answers, each with the names of its environments."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, answer in answers.items():
        groups.setdefault(tuple(answer.text), []).append(name)
    for text, names in groups.items():
        if text:
            yield names, answers[names[0]]


# Writing


def _data(answer: EnvironmentAnswer) -> object:
    """Return the data of an answer; several pieces as a list."""
    if not answer.data and answer.text:
        return json.loads("\n".join(answer.text))  # already rendered as text
    return answer.data[0] if len(answer.data) == 1 else answer.data or None


def _merge_sarif(logs: Sequence[Any]) -> object:
    """Return one log with the results of all, each once."""
    results: dict[str, object] = {}
    for log in logs:
        results |= {json.dumps(result, sort_keys=True): result for result in log["runs"][0]["results"]}
    return {**logs[0], "runs": [{**logs[0]["runs"][0], "results": list(results.values())}]} if logs else None


def _write_text(
    answers: dict[str, EnvironmentAnswer], given: dict[str, EnvironmentAnswer], *, is_markdown: bool
) -> None:
    groups = list(grouped(given))
    shared = _shared_head([answer for _, answer in groups]) if is_markdown else []
    first = _first_line(answers)
    if first is not None:
        print_lines("\n".join([*shared, first]))
    is_told = first is not None and len(groups) == 1 and len(given) == len(answers)
    for number, (names, answer) in enumerate(groups):
        gap = "\n" if number or first is not None else ""
        title = listed(names, len(answers), _MAX_TITLE_NAMES)
        heading = f"#### {title}\n\n" if is_markdown else "" if is_told else f"{_bold(title + ':')}\n"
        text = "\n".join(answer.text).split("\n")[len(shared) :]
        print_lines(f"{gap}{heading}" + "\n".join(text))
    if empty := {name: answer for name, answer in given.items() if answer.is_empty}:
        gap = "\n" if groups or first is not None else ""
        print_lines(gap + _nothing_to_show(empty, len(answers)))


def _nothing_to_show(empty: Mapping[str, EnvironmentAnswer], of: int) -> str:
    read = f" {FROM_WHAT_WAS_READ}" if any(answer.status == PARTIAL for answer in empty.values()) else ""
    names = listed(list(empty), of)
    count = f"{len(empty)} environments: " if _MAX_NAMES < len(empty) < of else ""
    return f"nothing to show{read} in {count}{names}"


def _shared_head(answers: Sequence[EnvironmentAnswer]) -> list[str]:
    """Return the title that all answers have, up to the first empty line."""
    texts = ["\n".join(answer.text).split("\n") for answer in answers]
    heads = {tuple(lines[: lines.index("") + 1]) for lines in texts if "" in lines}
    return list(*heads) if len(heads) == 1 else []


def _bold(text: str) -> str:
    return click.style(text, bold=True) if colored() else text


def _first_line(answers: dict[str, EnvironmentAnswer]) -> str | None:
    """Return the line with the short answers and their environments; None for a command without short answers."""
    summaries: dict[str, list[str]] = {}
    for name, answer in answers.items():
        if answer.is_absent:
            continue
        if answer.summary is not None and not answer.failures:
            summaries.setdefault(answer.summary, []).append(name)
    if not summaries:
        return None
    ranks = {verdict: rank for rank, verdict in enumerate(_VERDICT_ORDER)}
    ordered = sorted(summaries, key=lambda summary: ranks.get(summary.split(" ")[0], -1))
    parts = [_with_names(summary, listed(summaries[summary], len(answers))) for summary in ordered]
    failed = [name for name, answer in answers.items() if answer.failures and not answer.is_absent]
    absent = [name for name, answer in answers.items() if answer.is_absent]
    parts += [f"not decided in {listed(failed, len(answers))}"] if failed else []
    parts += [f"not in {listed(absent, len(answers))}"] if absent else []
    return _bold("; ".join(parts))


def _with_names(summary: str, names: str) -> str:
    return f"{summary} {names}" if summary.endswith(":") else f"{summary} in {names}"


def _write_whole(given: dict[str, EnvironmentAnswer]) -> None:
    """Write an output that cannot be merged, such as a picture, if it is the same for all environments."""
    groups = list(grouped(given))
    if len(groups) > 1:
        fail([several_environments(list(given), lambda name: f"they differ; choose one: --environment {name}")])
    for _, answer in groups:
        emit("\n".join(answer.text) + "\n")


def _add_failures(answers: dict[str, EnvironmentAnswer], notes: Notes) -> None:
    """Add the reasons for missing answers. An object that some environments lack is no error if others have it."""
    missing = all(answer.is_absent for answer in answers.values())
    for name, answer in answers.items():
        if answer.is_absent and not missing:
            continue
        for failure in answer.failures:
            notes.add(failure, [name])
    failed = [name for name, answer in answers.items() if answer.failures and (missing or not answer.is_absent)]
    if failed:
        notes.failed = f"could not decide in {listed(failed, len(answers))}"
    for name, answer in answers.items():
        for line in answer.notes if missing or not answer.is_absent else ():
            notes.add_line(line, name)


def _by_code(shown: Sequence[_DiagnosedEnvironments]) -> dict[str, list[_DiagnosedEnvironments]]:
    """Group diagnostics by their codes, in the order of first occurrence."""
    groups: dict[str, list[_DiagnosedEnvironments]] = {}
    for pair in shown:
        groups.setdefault(pair[0].code.id, []).append(pair)
    return groups


class Notes:
    """Diagnostics and other lines beside the answers. Each is written once, with the names of its environments."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._diagnostics: dict[object, tuple[Diagnostic, list[str]]] = {}
        self._lines: dict[str, list[str]] = {}
        self.failed: str | None = None

    @classmethod
    def of(cls, answers: Mapping[str, EnvironmentAnswer], diagnostics: Iterable[Diagnostic] = ()) -> Notes:
        """Return the diagnostics of some answers. `diagnostics` are about all environments."""
        notes = cls(list(answers))
        for diagnostic in diagnostics:
            notes.add(diagnostic, answers)
        for name, answer in answers.items():
            for diagnostic in answer.diagnostics:
                notes.add(diagnostic, [name])
        return notes

    def add(self, diagnostic: Diagnostic, names: Iterable[str]) -> None:
        """Add a diagnostic about some environments."""
        span = diagnostic.span
        at = (span.file, span.line, span.column, span.end_line, span.end_column) if span is not None else None
        _, known = self._diagnostics.setdefault(
            (diagnostic.code.id, diagnostic.message, diagnostic.help, at), (diagnostic, [])
        )
        known += [name for name in names if name not in known]

    def add_line(self, line: str, name: str) -> None:
        """Add a line about an environment."""
        known = self._lines.setdefault(line, [])
        known += [name] if name not in known else []

    def write(self) -> None:
        """Write all of them to standard error."""
        color = colored(sys.stderr)
        shown = [pair for pair in self._diagnostics.values() if pair[0].code.severity is not Severity.INFO]
        texts = []
        for several in _by_code(shown).values():
            texts += [
                f"{render_all([diagnostic], color=color)}{self._where(names)}"
                for diagnostic, names in several[:_MAX_PER_CODE]
            ]
            if more := several[_MAX_PER_CODE:]:
                names = list(dict.fromkeys(name for _, names in more for name in names))
                code = more[0][0].code
                texts.append(f"{code.severity}[{code.id}]: {len(more)} more in {listed(names, len(self._names))}")
        if texts:
            print_lines("\n\n".join(texts) + "\n", err=True)
        for line, names in self._lines.items():
            print_lines(
                line if len(names) == len(self._names) else f"{listed(names, len(self._names))}: {line}", err=True
            )
        if self.failed is not None:
            print_lines(self.failed, err=True)

    def _where(self, names: Sequence[str]) -> str:
        return "" if len(names) == len(self._names) else f"\n  = in: {listed(names, len(self._names))}"
