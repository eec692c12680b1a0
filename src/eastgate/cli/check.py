"""`check` and `explain`: one question, one answer."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

import click

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.enforcement import doubt_lines
from eastgate.authority.outcomes import INVALID_TOKEN, OTHERWISE, WITHOUT_TOKEN, Depends, PartialAnswer
from eastgate.authority.questions import Question, QuestionError
from eastgate.authority.spelling import KnownNames
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cli.environments import answer_each
from eastgate.cli.options import Sources, cluster_options, more_files, source_options, strict_option
from eastgate.cli.output import colored, conclude, emit_json, fail, output_option, print_lines, warn
from eastgate.cli.questions import Asked, question_options
from eastgate.cli.unconsidered import note_absence, print_unconsidered, status_of
from eastgate.cluster.unread import Handling

_MAX_PLACES, _MAX_CONDITIONS = 5, 3  # listed requests
_EXIT = (
    "Exits with 0 if allowed, 1 if denied (or DEPENDS: the verdict depends on parts that the question leaves out), "
    "2 if the question cannot be decided, "
    "3 if Eastgate did not read an object that could change the answer."
)


_sources = source_options(more_files, *cluster_options, strict_option)
_output = output_option("text", "json", about="Format of the answer.")


@click.command(epilog=_EXIT)
@_sources
@question_options
@_output
def check(sources: Sources, asked: Asked, output: str) -> None:
    """Check whether a caller may reach a destination."""
    answer_each(sources, lambda own: _check(own, asked, output), output=output)


def _check(sources: Sources, asked: Asked, output: str) -> NoReturn:
    decision, more = _decide(sources, asked)
    if output == "json":
        emit_json({**decision.to_json(), **more.to_json()})
    else:
        is_decided = more.depends is None or not more.depends.is_condition
        location = f"  ({decision.span.location})" if decision.span is not None and is_decided else ""
        verdict = decision.stated(more.unread, depends=more.depends is not None)
        color = "green" if decision.allowed else "yellow" if more.depends is not None else "red"
        first = f"{click.style(verdict, fg=color, bold=True)}  "
        head = [
            f"{first}{line}" if not number else f"  {line}" for number, line in enumerate(more.head(decision.reason))
        ]
        beside = [*_audited(decision), *_enforcers(decision), *_doubts(decision)]
        print_lines("\n".join([*head[:-1], f"{head[-1]}{location}", *more.lines(), *beside]))
        print_unconsidered(decision.unconsidered, more.unread)
    sys.exit(status_of(decision, more.unread))


@click.command(epilog=_EXIT)
@_sources
@question_options
@_output
def explain(sources: Sources, asked: Asked, output: str) -> None:
    """Check, and show the rules and YAML lines that decide.

    With -v, every stage is shown too.
    """
    answer_each(sources, lambda own: _explain(own, asked, output), output=output)


def _explain(sources: Sources, asked: Asked, output: str) -> NoReturn:
    from eastgate.reports.explain import explain as explained  # `check` does not need it

    decision, more = _decide(sources, asked)
    text = explained(
        decision,
        color=output != "json" and colored(),
        unread=more.unread,
        depends=more.depends is not None,
        verbose=sources.verbose,
        allowed_with=more.allowed_with,
    )
    if output == "json":
        emit_json({**decision.to_json(), **more.to_json(), "explanation": text})
    else:
        head, *rest = text.splitlines()
        reason = rest[:1] if more.depends is None or not more.depends.is_condition else []
        more_lines = [*more.lines(), *_doubts(decision)]
        print_lines("\n".join([head, *(f"  {line}" for line in more.head()), *reason, *more_lines, *rest[1:]]))
    sys.exit(status_of(decision, more.unread))


@dataclass(frozen=True, slots=True)
class _AnswerDetails:
    """The parts of the answer beside the decision.

    - `warnings`: names in the question that are probably misspelt.
    - `answer`: the conditions of a partial question.
    - `unread`: the treatment of unread objects.
    - `is_hidden`: the decision allows HTTP at a port that the proxy reads as bytes.
    """

    warnings: list[Diagnostic]
    answer: PartialAnswer
    unread: Handling
    is_hidden: bool

    def to_json(self) -> dict[str, object]:
        return {
            "warnings": [warning.to_json() for warning in self.warnings],
            "examples": self.answer.examples.to_json() if self.answer.examples is not None else None,
            "depends": self.depends.to_json() if self.depends is not None else None,
        }

    @property
    def depends(self) -> Depends | None:
        return self.answer.depends

    @property
    def allowed_with(self) -> tuple[Decision, str] | None:
        """Return the decision about the allowed example, and the options that it adds to the question."""
        by, examples = self.answer.allowed_by, self.answer.examples
        return (by, shlex.join(examples.allow)) if by is not None and examples is not None else None

    def head(self, *reasons: str) -> Iterator[str]:
        """Yield the first lines: for DEPENDS the conditions of both verdicts, and the reasons of other answers."""
        if self.depends is not None:
            yield printable(_describe(self.depends))
        if self.depends is None or not self.depends.is_condition:
            yield from map(printable, reasons)

    @property
    def _is_exact(self) -> bool:
        return self.depends is not None and OTHERWISE in (*self.depends.allow, *self.depends.deny)

    def lines(self) -> Iterator[str]:
        if self.is_hidden:
            yield "  by its name or appProtocol the port is no HTTP: Istio's proxy sees bytes (ask without --method)"
        examples = self.answer.examples
        if examples is not None:
            yield printable(f"  allowed, for example, with {shlex.join(examples.allow)}")
            if examples.deny is not None and not self._is_exact:
                yield printable(f"  denied, for example, with  {shlex.join(examples.deny)}")


def _audited(decision: Decision) -> Iterator[str]:
    """Yield the effects of audited policies: their verdict is not enforced."""
    return (printable(each.line) for each in decision.audit)


def _enforcers(decision: Decision) -> Iterator[str]:
    """Yield the enforcers of the policies on the way, if known. The reason names the policies that nothing enforces."""
    places: dict[str, list[str]] = {}
    for each in decision.enforcement:
        if each.by is not None and each.certain:
            places.setdefault(each.by, []).append(each.at)
    for by, ats in places.items():
        yield printable(f"  enforced at {_listed(list(dict.fromkeys(ats)))} by {by}")


def _doubts(decision: Decision) -> Iterator[str]:
    """Yield the policies that may not be in force, and the setting that decides."""
    yield from (printable(f"  {line}") for line in doubt_lines(decision.enforcement))


def _describe(depends: Depends) -> str:
    """Describe in one line the conditions of both verdicts."""
    if not depends.is_condition:
        return f"allowed at {_listed(depends.allow)}; denied at {_listed(depends.deny)}"
    options = f" (add {', '.join(depends.options)})" if depends.options else ""
    if depends.allow == (WITHOUT_TOKEN,) and depends.deny == (INVALID_TOKEN,):
        return f"ALLOW {WITHOUT_TOKEN}; DENY with an invalid one{options}"
    if not depends.options:  # only examples are known
        return "some of the requests that it may mean are allowed, and others are denied"
    lists = {"allowed": depends.allow, "denied": depends.deny}
    parts = [(verdict, texts) for verdict, texts in lists.items() if texts]
    parts.sort(key=lambda part: OTHERWISE in part[1])
    return "; ".join(f"{verdict} {_conditions(texts)}" for verdict, texts in parts) + options


def _conditions(texts: Sequence[str]) -> str:
    """List the conditions of a verdict, and count the others."""
    others = [text for text in texts if text == OTHERWISE or text.startswith(("with ", "without "))]
    named = [text for text in texts if text not in others]
    return " and ".join([*([f"for {_listed(named, _MAX_CONDITIONS)}"] if named else []), *others])


def _listed(places: Sequence[str], most: int = _MAX_PLACES) -> str:
    more = len(places) - most
    return ", ".join(places[:most]) + (f" and {more} more" if more > 0 else "")


def _with_port(question: Question, port: str | None, authority: Authority) -> Question:
    """Return a question with the number of a named port."""
    if question.port is not None or port is None:
        return question
    from eastgate.authority.questions.destinations import port_named  # most ports are numbers

    return replace(question, port=port_named(port, question.destination, authority.world))


def _answer(question: Question, authority: Authority) -> PartialAnswer:
    """Answer a question about every request that it may mean."""
    decision = authority.decide(question)
    if decision.allowed and not decision.leaves_protocol_open:
        return PartialAnswer(decision)
    from eastgate.reports.depends import answer_question  # most questions are complete

    return answer_question(question, authority)


def _decide(sources: Sources, asked: Asked) -> tuple[Decision, _AnswerDetails]:
    settings = sources.settings()
    in_namespace = any(value.startswith("namespace=") for value in sources.values)
    question = asked.question(settings, in_namespace=in_namespace)
    authority = sources.authority(settings, asked.keys())
    doubts: list[Diagnostic] = []
    try:
        question = _with_port(question, asked.port, authority)
        doubts = [doubt.diagnostic(strict=sources.strict) for doubt in KnownNames(authority).doubts(question)]
        answer = _answer(question, authority)
        is_hidden = answer.decision.allowed and _hides_http(answer.decision, authority)
    except QuestionError as error:
        note_absence(error, sources, authority, getattr(question.destination, "namespace", None))
        errors = (own for policy in authority.rejected for own in policy.errors)
        broken = (diagnostic for diagnostic in errors if diagnostic not in error.diagnostics)
        fail([*error.diagnostics, *broken, *doubts], authority.unread_objects.objects)
    if sources.strict and doubts:
        fail(doubts)
    conclude(answer.decision.stated(sources.unread, depends=answer.depends is not None))
    enforcement = answer.decision.enforcement
    points = [point for point in answer.decision.points if isinstance(point, str)]
    notices = authority.notices(points) if any(each.by is None for each in enforcement) else []
    warn([*authority.warnings, *notices, *doubts])
    return answer.decision, _AnswerDetails([*notices, *doubts], answer, sources.unread, is_hidden)


def _hides_http(decision: Decision, authority: Authority) -> bool:
    if not (decision.question.is_http and decision.looks_at_protocol):
        return False
    from eastgate.reports.allowed_requests import hides_http  # few questions are of HTTP to a proxy of Istio

    return hides_http(decision, authority)
