"""Sampled requests compared with a comparison: each changed request is in a difference, and each example changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hypothesis import event

from eastgate import Authority, Question, QuestionError
from eastgate.authority.authority import programs_of
from eastgate.authority.questions import arrivals
from eastgate.ir import Request
from eastgate.ir.attributes import IDENTITY, MESH_NAME, PORT, SERVICE, SNI
from eastgate.ir.authorizers import consents
from eastgate.ir.symbolic.stages import answer_attribute, is_answer
from eastgate.ir.symbolic.trees import truth
from eastgate.reach.comparison import AuthorityComparison, DoubtReason, VerdictDifference
from eastgate.reach.differences import compare
from eastgate.reach.endings import Spelling
from eastgate.reach.pairing import Pair
from eastgate.reports.diff.run import report_of

__all__ = ["check_pair"]


def check_pair(old: Authority, new: Authority, questions: Iterable[Question]) -> AuthorityComparison:
    """Assert that a comparison of two authorities is right about some questions, and about its own examples."""
    comparison = compare(old, new)
    _check_examples(comparison)
    for question in questions:
        try:
            before, after = old.decide(question), new.decide(question)
        except QuestionError:
            continue
        if before.allowed == after.allowed:
            continue
        if before.unknown or after.unknown:
            continue  # it means several requests
        event("a verdict differs")
        assert not comparison.equal, (question, before.reason, after.reason)
        assert _is_told(comparison, question), (question, before.reason, after.reason)
    for reason in sorted({doubt.reason for doubt in comparison.doubts}):
        event(f"doubt: {reason}")
    event("equal" if comparison.equal else "proven" if comparison.proven else "not proven")
    return comparison


def _check_examples(comparison: AuthorityComparison) -> None:
    report = report_of(comparison)
    assert bool(report.changes) == bool(comparison.differences)
    for difference in comparison.differences:
        confirmation = difference.confirmation
        assert confirmation is not None
        verdicts = []
        for authority in (comparison.old, comparison.new):
            decision = authority.decide(confirmation.question)
            verdicts.append(dict(decision.ways).get(confirmation.member, decision.allowed))
        assert verdicts == [difference.old.allowed, difference.new.allowed]
        assert difference.old.allowed != difference.new.allowed


def _is_told(comparison: AuthorityComparison, question: Question) -> bool:
    told = [*comparison.differences, *(doubt.difference for doubt in comparison.doubts if doubt.difference is not None)]
    kind, _, key = str(question.destination).partition(":")
    for point, request in _requests(comparison, question):
        names = {f"pod:{point}"} if kind in ("pod", "service") else {f"{kind}:{key}"}
        if kind == "route":
            names = {f"{pair.kind}:{pair.members[0]}" for pair in comparison.pairing.pairs if pair.kind != "pod"}
        unknown = {DoubtReason.TOO_MANY, *([DoubtReason.SHARED_SERVER] if request.refused_path else [])}
        if any(doubt.reason in unknown and doubt.subject in names for doubt in comparison.doubts):
            return True
        if any(
            {f"{each.pair.kind}:{member}" for member in each.pair.members} & names
            and _contains(comparison, each, request)
            for each in told
        ):
            return True
    return False


def _requests(comparison: AuthorityComparison, question: Question) -> Iterator[tuple[object, Request]]:
    for authority in (comparison.new, comparison.old):
        entries = arrivals(question, authority.world, authority.settings)
        for request, arrival in zip(authority.requests(question), entries, strict=True):
            values = dict(request.values)
            for point in arrival.points:
                for layer in programs_of(authority).program(point).layers:
                    for ask in layer.asks:
                        answer = request.answers.get(ask.authorizer)
                        values[answer_attribute(ask.authorizer)] = "allow" if consents(answer) else None
            yield arrival.points[0], Request(values)


def _contains(comparison: AuthorityComparison, difference: VerdictDifference, request: Request) -> bool:
    values = request.values
    identity, name = values[IDENTITY], values[MESH_NAME]
    callers = comparison.callers
    cell = callers.cell_of(identity if isinstance(identity, str) else None, name if isinstance(name, str) else None)
    if not callers.set_of([cell]) & difference.callers:
        return False
    if difference.entrance not in _entrances(difference.pair, request):
        return False
    if difference.spelling is not Spelling.PLAIN and difference.spelling not in _spellings(request):
        return False
    known = {attribute: value for attribute, value in values.items() if not is_answer(attribute)}
    return truth(difference.when, request) is not False or truth(difference.when, Request(known)) is not False


def _spellings(request: Request) -> set[Spelling]:
    held = {
        Spelling.ENCODED_SLASH: request.refused_path,
        Spelling.RESPELLED: request.respelled_path,
        Spelling.BAD_HOST: request.bad_host,
    }
    return {spelling for spelling, holds in held.items() if holds}


def _entrances(pair: Pair, request: Request) -> list[object]:
    port, service, sni = request.values[PORT], request.values.get(SERVICE), request.values.get(SNI)
    every = [now for _, now in pair.entrances]
    services = {entrance.service for entrance in every}
    chosen = [entrance for entrance in every if entrance.service == (service if service in services else None)]
    named = [entrance for entrance in chosen if port in entrance.ports]
    if len({entrance.tls for entrance in named}) > 1:
        named = [entrance for entrance in named if entrance.tls == (sni is not None)]
    return list(named) or [entrance for entrance in chosen if entrance.others]
