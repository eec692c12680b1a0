"""`check` and `explain`: one question, one answer."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence

import click

from eastgate.api.decisions import Decision
from eastgate.api.outcomes import Depends, Examples, examples
from eastgate.api.questions import QuestionError
from eastgate.api.spelling import KnownNames
from eastgate.cli.options import (
    keys_from,
    load_authority,
    manifest_options,
    output_option,
    question_from,
    question_options,
    settings_from,
    strict_option,
)
from eastgate.cli.output import colored, emit_json, fail, say, warn
from eastgate.cli.unconsidered import handling_of, status_of, tell, unread_option
from eastgate.diagnostics import Diagnostic
from eastgate.diagnostics.printable import printable
from eastgate.manifests import Bounds
from eastgate.records import dataclass
from eastgate.unread import Handling

__all__ = ["check", "explain"]

_MOST_PLACES = 5  # that are listed
_EXIT = (
    "Exits with 0 if allowed, 1 if denied (or DEPENDS: parts that the question leaves out decide), "
    "2 if it could not be decided, "
    "3 if the answer is about what was read, and what is not read could change it."
)


@click.command(epilog=_EXIT)
@manifest_options
@question_options
@strict_option
@unread_option
@output_option
def check(output: str, **options: object) -> None:
    """May this source reach that destination?"""
    decision, more = _decide(output, options)
    if output == "json":
        emit_json({**decision.to_json(), **more.to_json()})
    else:
        location = f"  ({decision.span.location})" if decision.span else ""
        verdict = decision.stated(more.unread, depends=more.depends is not None)
        color = "green" if decision.allowed else "yellow" if more.depends is not None else "red"
        first = f"{click.style(verdict, fg=color, bold=True)}  "
        head = [
            f"{first}{line}" if not number else f"  {line}" for number, line in enumerate(more.head(decision.reason))
        ]
        say("\n".join([*head[:-1], f"{head[-1]}{location}", *more.lines(), *_enforcers(decision)]))
        tell(decision.unconsidered, more.unread)
    sys.exit(status_of(decision, more.unread))


@click.command(epilog=_EXIT)
@manifest_options
@question_options
@strict_option
@unread_option
@output_option
def explain(output: str, **options: object) -> None:
    """The same as check, with every layer and stage, and a caret under the YAML that decided."""
    from eastgate.reports.explain import explain as explained  # `check` does without

    decision, more = _decide(output, options)
    if output == "json":
        text = explained(decision, unread=more.unread, depends=more.depends is not None)
        emit_json({**decision.to_json(), **more.to_json(), "explanation": text})
    else:
        depends = more.depends is not None
        head, *rest = explained(decision, color=colored(), unread=more.unread, depends=depends).splitlines()
        say("\n".join([head, *(f"  {line}" for line in more.head()), *rest[:1], *more.lines(), *rest[1:]]))
    sys.exit(status_of(decision, more.unread))


@dataclass(frozen=True, slots=True)
class _More:
    """The parts beside the answer: what is probably wrong with the question, what it leaves open, and how far to
    tell what was not considered.
    """

    warnings: list[Diagnostic]
    examples: Examples | None
    unread: Handling

    def to_json(self) -> dict[str, object]:
        return {
            "warnings": [warning.to_json() for warning in self.warnings],
            "examples": self.examples.to_json() if self.examples is not None else None,
            "depends": self.depends.to_json() if self.depends is not None else None,
        }

    @property
    def depends(self) -> Depends | None:
        return self.examples.depends if self.examples is not None else None

    def head(self, *reasons: str) -> Iterator[str]:
        """Yield the first lines: for DEPENDS the places that allow and those that deny, then the reasons."""
        if self.depends is not None:
            allow, deny = (_listed(places) for places in (self.depends.allow, self.depends.deny))
            yield printable(f"allowed at {allow}; denied at {deny}")
        yield from map(printable, reasons)

    def lines(self) -> Iterator[str]:
        if self.examples is not None:
            yield printable(f"  allowed, for example, with {shlex.join(self.examples.allow)}")
            if self.examples.deny is not None:
                yield printable(f"  denied, for example, with  {shlex.join(self.examples.deny)}")


def _enforcers(decision: Decision) -> Iterator[str]:
    """Yield who enforces the policies on the way, where that is known. The reason names those that nothing enforces."""
    places: dict[str, list[str]] = {}
    for each in decision.enforcement:
        if each.by is not None and each.certain:
            places.setdefault(each.by, []).append(each.at)
    for by, ats in places.items():
        yield printable(f"  enforced at {_listed(list(dict.fromkeys(ats)))} by {by}")


def _listed(places: Sequence[str]) -> str:
    more = len(places) - _MOST_PLACES
    return ", ".join(places[:_MOST_PLACES]) + (f" and {more} more" if more > 0 else "")


def _decide(output: str, options: dict[str, object]) -> tuple[Decision, _More]:
    files, more = options["files"], options["more_files"]
    config, set_values = options["config"], options["settings"]
    exclude = options["exclude"]
    assert isinstance(exclude, tuple)  # noqa: S101 - click makes it so
    assert isinstance(files, tuple) and isinstance(more, tuple) and isinstance(set_values, tuple)  # noqa: S101, PT018
    settings = settings_from(set_values, config if isinstance(config, str) else None, output)
    question = question_from(options, output)
    keys = keys_from(options, output)
    paths = (*files, *more)
    bounds = Bounds.of(paths, follow=bool(options["follow"]), exclude=exclude)
    strict, handling = bool(options["strict"]), handling_of(options["unread"])
    authority = load_authority(
        paths,
        settings,
        output,
        bounds=bounds,
        verbose=bool(options["verbose"]),
        keys=keys,
        strict=strict,
        unread=handling,
    )
    doubts = [doubt.diagnostic(strict=strict) for doubt in KnownNames(authority).doubts(question)]
    try:
        decision = authority.decide(question)
    except QuestionError as error:
        errors = (own for policy in authority.rejected for own in policy.errors)
        broken = (diagnostic for diagnostic in errors if diagnostic not in error.diagnostics)
        fail([*error.diagnostics, *broken, *doubts], output)
    if strict and doubts:
        fail(doubts, output)
    warn([*authority.warnings, *doubts])
    return decision, _More(doubts, examples(decision, authority), handling)
