"""Answers to questions that leave something out: ALLOW, DENY, or DEPENDS with conditions.

ALLOW needs all requests that a question may mean to be allowed. The engine has decided the example of a DEPENDS answer.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from eastgate.authority.authority import Authority, decider_of
from eastgate.authority.decisions import Decision
from eastgate.authority.outcomes import OTHERWISE, Depends, Examples, PartialAnswer, examples
from eastgate.authority.questions import Question, QuestionError, ends
from eastgate.ir.attributes import APPLICATION
from eastgate.reports.allowed_requests import AllowedRequests, widen


def answer_question(question: Question, authority: Authority) -> PartialAnswer:
    """Answer a question for every request that it may mean. Raises QuestionError if it cannot be decided."""
    decision = authority.decide(question)
    if question.is_bare_message:
        found = examples(decision, authority)
        return PartialAnswer(decision, found, found.depends if found is not None else None)
    decide = partial(_decide_every, authority=authority)
    every = decide(question)
    if every.allowed:
        return PartialAnswer(decision if decision.allowed else every)
    denied = every if decision.allowed else decision
    by_port = _answer_ports(question, authority)
    if by_port is not None:
        return by_port if by_port.depends is not None else PartialAnswer(denied)
    requests = AllowedRequests(question, authority)
    allowed = next((each for each in requests.allowed_questions() if _is_allowed(each, decide)), None)
    if allowed is None and _is_mere_protocol(every):
        return PartialAnswer(denied)
    found = examples(every, authority, decide, allowed)
    if found is None or found.allowed is None:
        return PartialAnswer(denied)
    depends = requests.depends(found.allowed)
    return PartialAnswer(every, found, depends or _by_example(found), decide(found.allowed))


def _is_allowed(question: Question, decide: partial[Decision]) -> bool:
    try:
        return decide(question).allowed
    except QuestionError:
        return False


def _is_mere_protocol(decision: Decision) -> bool:
    """Return whether only the protocol of a request is unknown. A search then finds nothing more."""
    return set(decision.unknown) <= {APPLICATION}


def _by_example(found: Examples) -> Depends:
    """Return examples as conditions. This is used if the conditions cannot be listed."""
    assert found.allowed is not None  # noqa: S101 - who calls has looked
    allow = (f"for example {shlex.join(found.allow)}",)
    deny = (f"for example {shlex.join(found.deny)}",) if found.deny is not None else ()
    return Depends(allow, deny, tuple(found.allowed.arguments), is_condition=True)


# All requests that a question may mean


def _decide_every(question: Question, authority: Authority) -> Decision:
    """Decide bytes and all HTTP requests that a question may mean. Allow only if all are allowed."""
    decision = authority.decide(question)
    if decision.allowed and not decision.leaves_protocol_open:
        return decision
    return decider_of(authority).decide_widened(question, partial(widen, question=question, world=authority.world))


# Ports


def _answer_ports(question: Question, authority: Authority) -> PartialAnswer | None:
    """Answer for each port of a Service or a Gateway that has several; None if the question names one port."""
    ports = _ports_of(question, authority) if question.port is None else []
    if len(ports) < 2:
        return None
    try:
        answers = [(port, answer_question(replace(question, port=port), authority)) for port in ports]
    except QuestionError:
        return None
    first = next((each for each in answers if each[1].decision.allowed or each[1].depends is not None), None)
    denied = next((each for _, each in answers if not each.decision.allowed), None)
    if first is None or denied is None:
        return PartialAnswer(answers[0][1].decision)
    allow = tuple(text for port, each in answers for text in _at_port(port, each))
    port, found = first
    allowed = replace(question, port=port)
    added: tuple[str, ...] = ("--port", str(port))
    if found.examples is not None and found.examples.allowed is not None:
        allowed, added = found.examples.allowed, (*added, *found.examples.allow)
    options = dict.fromkeys(("--port", *(name for _, each in answers if each.depends for name in each.depends.options)))
    deny = (OTHERWISE,) if all(_is_exact(each.depends) for _, each in answers) else ()
    depends = Depends(allow, deny, tuple(allowed.arguments), is_condition=True, options=tuple(options))
    allowed_by = found.allowed_by if found.allowed_by is not None else found.decision
    return PartialAnswer(denied.decision, Examples(added, None, None, allowed), depends, allowed_by)


def _is_exact(depends: Depends | None) -> bool:
    return depends is None or OTHERWISE in (*depends.allow, *depends.deny)


def _ports_of(question: Question, authority: Authority) -> Sequence[int]:
    to, world = question.destination, authority.world
    if isinstance(to, ends.Service) and to.key in world.services:
        return list(dict.fromkeys(declared.port for declared in world.services[to.key].ports))
    if isinstance(to, ends.Gateway) and to.key in world.gateways:
        return list(dict.fromkeys(listener.port for listener in world.gateways[to.key].listeners))
    return []


def _at_port(port: int, answer: PartialAnswer) -> Iterator[str]:
    if answer.decision.allowed:
        yield f"port {port}"
    elif answer.depends is not None and answer.depends.allow == (OTHERWISE,):
        yield f"port {port} except {', '.join(answer.depends.deny)}"
    elif answer.depends is not None:
        yield from (f"port {port} {text}" for text in answer.depends.allow)
