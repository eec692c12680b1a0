"""Answers of `Reachability` to questions, without the engine: the entrance, the caller's cell, the first branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hypothesis import event

from eastgate import Authority, Question, QuestionError
from eastgate.authority.authority import programs_of
from eastgate.authority.questions import arrivals
from eastgate.engine.reference import holds
from eastgate.ir import Layer, Request, mentions
from eastgate.ir.attributes import IDENTITY, MESH_NAME, PORT, SERVICE, SNI
from eastgate.ir.authorizers import consents
from eastgate.ir.symbolic.stages import answer_attribute
from eastgate.reach.destinations import Destination, Entrance
from eastgate.reach.reachability import Answer, Reachability

__all__ = [
    "compare_with_check",
    "compare_with_engine",
    "find_answer",
    "find_entrance",
    "first_allowed",
    "reachability",
    "with_answers",
]


def compare_with_check(reach: Reachability, authority: Authority, question: Question) -> bool | None:
    """Assert that reachability and `check` agree on a question; return None if one of them cannot answer."""
    try:
        decision = authority.decide(question)
        requests = authority.requests(question)
    except QuestionError:
        return None
    verdicts = list(_verdicts(reach, question, requests))
    if None in verdicts:
        _count(None)
        return None
    allowed = all(verdicts)
    if any(request.refused_path or request.respelled_path or request.bad_host for request in requests):
        assert allowed or not decision.allowed, (question, decision.reason)  # proxies refuse invalid requests
    else:
        assert allowed == decision.allowed, (question, decision.reason, verdicts)
    _count(allowed)
    return allowed


def compare_with_engine(reach: Reachability, workload: str, request: Request) -> None:
    """Assert that reachability and the engine agree on a request to a workload."""
    destination = next(each for each in reach.destinations if workload in each.members)
    allowed = first_allowed(reach, destination, request)
    program = programs_of(reach.authority).program(workload)
    outcome = program.outcome(program.decide(request))
    if allowed is not None and (request.refused_path or request.respelled_path):
        assert allowed or not outcome.allowed, (request, outcome)
    elif allowed is not None:
        assert allowed == outcome.allowed, (request, outcome)
    _count(allowed)


def _count(allowed: bool | None) -> None:
    event("not comparable" if allowed is None else "allowed" if allowed else "denied")


def _verdicts(reach: Reachability, question: Question, requests: list[Request]) -> Iterator[bool | None]:
    kind, _, key = str(question.destination).partition(":")
    if kind in ("pod", "service"):
        entries = arrivals(question, reach.authority.world, reach.authority.settings)
        for request, arrival in zip(requests, entries, strict=True):
            (point,) = arrival.points
            destination = next(each for each in reach.destinations if each.kind == "pod" and point in each.members)
            yield first_allowed(reach, destination, request)
        return
    destination = next(each for each in reach.destinations if each.kind == kind and key in each.members)
    # All later hops are one passage. The backend is known there, so the request need not have it.
    yield first_allowed(reach, destination, requests[0])


def first_allowed(reach: Reachability, destination: Destination, request: Request) -> bool | None:
    """Return whether the FIRST branch that matches allows; None if there are too many branches."""
    entrance = find_entrance(destination, request)
    if entrance is None:
        return False  # no server listens there
    answer = find_answer(reach, entrance, request)
    if answer.too_many:
        return None
    whole = with_answers(request, entrance.layers)
    for branch in answer.branches:
        if any(attribute not in whole.values for attribute in mentions(branch.when)):
            return None
        if holds(branch.when, whole):
            return branch.end.allowed
    raise AssertionError(f"no branch holds of {whole}")


def find_entrance(destination: Destination, request: Request) -> Entrance | None:
    """Return the entrance of a request."""
    service, port, sni = request.values.get(SERVICE), request.values[PORT], request.values.get(SNI)
    services = {entrance.service for entrance in destination.entrances}
    chosen = [each for each in destination.entrances if each.service == (service if service in services else None)]
    named = [each for each in chosen if port in each.ports]
    if len({each.tls for each in named}) > 1:
        named = [each for each in named if each.tls == (sni is not None)]
    return next(iter(named), None) or next(
        (each for each in chosen if isinstance(port, int) and each.takes(port)), None
    )


def find_answer(reach: Reachability, entrance: Entrance, request: Request) -> Answer:
    """Return the one answer for the caller of a request."""
    identity, name = request.values[IDENTITY], request.values[MESH_NAME]
    cell = reach.callers.cell_of(
        identity if isinstance(identity, str) else None, name if isinstance(name, str) else None
    )
    caller = reach.callers.set_of([cell])
    (answer,) = (each for each in reach.answers(entrance) if each.callers & caller)
    return answer


def with_answers(request: Request, layers: Iterable[Layer]) -> Request:
    """Return a request with the answers of authorizers as attributes, for conditions of branches."""
    values = dict(request.values)
    for layer in layers:
        for ask in layer.asks:
            answer = request.answers.get(ask.authorizer)
            values[answer_attribute(ask.authorizer)] = "allow" if consents(answer) else None
    return Request(values)


def reachability(authority: Authority) -> Reachability:
    """Return a reachability whose answers are a partition of all callers: each caller has exactly one."""
    reach = Reachability(authority)
    for destination in reach.destinations:
        for entrance in destination.entrances:
            answers = reach.answers(entrance)
            together = 0
            for answer in answers:
                assert not together & answer.callers
                together |= answer.callers
            assert together == reach.callers.everybody
    return reach
