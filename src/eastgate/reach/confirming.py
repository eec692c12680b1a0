"""Confirmation of differences: a witness counts as a change only if `decide` gives different answers on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import QuestionError
from eastgate.basics.records import dataclass
from eastgate.cluster.question import Question
from eastgate.ir import Request
from eastgate.ir.attributes import HOST, MCP_METHOD, METHOD
from eastgate.ir.symbolic.callers import CallerCell
from eastgate.ir.symbolic.cells import OTHER
from eastgate.reach.destinations import Destination, Entrance
from eastgate.reach.endings import Spelling
from eastgate.reach.pairing import Pair
from eastgate.reach.questions import question_of
from eastgate.reach.samples import concrete_requests

_PATH = "/any-other"
_HOST = "any-other.example"
_HEADER = "x-any-other"
_ADDRESS = "203.0.113.7"
_MAX_QUESTIONS = 120
_METHODS = ("GET", "POST", "PUT")


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question with different answers of two engines, and these answers for one member of the destination.

    `is_declared`: the workload declares the port, or a Service leads to it.
    """

    question: Question
    member: str
    old: Decision
    new: Decision
    is_declared: bool = True


class Confirmer:
    """Asks both engines about complete requests: the answers do not depend on attributes that a question leaves out.

    `schemes` are the names of authorizers that may answer differently on the two sides. `issuers` are the issuers of
    tokens that they may accept.
    """

    def __init__(self, old: Authority, new: Authority, schemes: Iterable[str], issuers: Iterable[str] = ()) -> None:
        self._old = old
        self._new = new
        self._schemes = frozenset(map(str, schemes))
        self._issuers = tuple(issuers)

    def confirm(
        self,
        pair: Pair,
        entrance: Entrance,
        cell: CallerCell,
        request: Request,
        spelling: Spelling,
        *,
        now_allowed: bool,
    ) -> Confirmation | None:
        """Return a question, made from a witness, whose verdict is now allow (or deny) and was not before; or None."""
        member = self._member(pair, entrance)
        destination = Destination(pair.kind, (member,), ())
        asked: set[str] = set()
        questions = self._questions(destination, member, entrance, cell, request, spelling)
        for question in islice(questions, _MAX_QUESTIONS):
            key = repr(question.arguments)
            if key in asked:
                continue
            asked.add(key)
            try:
                old, new = self._old.decide(question), self._new.decide(question)
            except QuestionError:
                continue
            if (_verdict(old, member), _verdict(new, member)) != (not now_allowed, now_allowed):
                continue
            if not (old.unknown or new.unknown):
                return Confirmation(question, member, old, new, self._declared_port(member, entrance) is not None)
        return None

    def _member(self, pair: Pair, entrance: Entrance) -> str:
        worlds = (self._old.world, self._new.world)
        if entrance.service is None:
            return pair.members[0]
        behind = (key for key in pair.members if all(entrance.service in world.services_of(key) for world in worlds))
        return next(behind, pair.members[0])

    def _questions(
        self,
        destination: Destination,
        member: str,
        entrance: Entrance,
        cell: CallerCell,
        request: Request,
        spelling: Spelling,
    ) -> Iterator[Question]:
        for concrete in concrete_requests(request):
            domain, port = self._new.settings.trust_domain, self._declared_port(member, entrance)
            question = question_of(destination, member, entrance, cell, concrete, domain, port)
            answers = {name: answer for name, answer in question.external_auth.items() if name not in self._schemes}
            whole = replace(question, external_auth=answers)
            for handed in (replace(whole, sni=None), whole) if entrance.tls is False else (whole,):
                yield from self._variants(handed, concrete, spelling)

    def _declared_port(self, member: str, entrance: Entrance) -> int | None:
        """Return a port of an entrance that the workload declares or a Service leads to, or None."""
        world = self._new.world
        workload = world.workloads.get(member)
        if workload is None or entrance.service is not None:
            return None
        declared = [port.number for port in workload.ports if port.protocol == "TCP"]
        for key in world.services_of(member):
            service = world.services[key]
            declared += [
                number for port in service.ports for number in world.target_ports(service, port.port, workload)
            ]
        return next((port for port in declared if port in entrance.ports), None)

    def _variants(self, question: Question, request: Request, spelling: Spelling) -> Iterator[Question]:
        for spelled in _spelled(question, spelling):
            for asked in (*_with_known_method(spelled, request), spelled):
                yield asked
                for completed in _completed(asked, request):
                    yield completed
                    yield from self._with_tokens(completed)

    def _with_tokens(self, question: Question) -> Iterator[Question]:
        if self._schemes:
            for issuer in self._issuers:
                yield replace(question, claims={"iss": issuer, "sub": "any-other", **(question.claims or {})})


def _verdict(decision: Decision, member: str) -> bool:
    """Return the verdict of a decision for one of the places that its question leads to."""
    return dict(decision.ways).get(member, decision.allowed)


def _with_known_method(question: Question, request: Request) -> Iterator[Question]:
    """Yield the question with common methods, if its method is only known to differ from those in rules."""
    if request.values.get(METHOD) == OTHER:
        is_message = question.mcp_method is not None or question.tool is not None
        yield from (replace(question, method=method) for method in (("POST",) if is_message else _METHODS))


def _completed(question: Question, request: Request) -> Iterator[Question]:
    """Yield the question with values for the parts that it leaves out, as in usual requests."""
    is_message = question.mcp_method is not None or question.tool is not None
    values = request.values
    if METHOD in values and values[METHOD] is None:
        return  # no HTTP at all
    method = question.method or ("POST" if is_message or values.get(MCP_METHOD) is not None else "GET")
    host = question.host or (None if HOST in values and values[HOST] is None else _HOST)
    whole = replace(
        question,
        method=method,
        path=question.path or _PATH,
        host=host,
        headers=question.headers or {_HEADER: "any-other"},
        source_ip=question.source_ip or _ADDRESS,
    )
    yield replace(question, method=method, path=whole.path)
    yield replace(whole, source_ip=question.source_ip)
    yield whole
    if question.method is None and not is_message:
        yield replace(whole, method="POST")


def _spelled(question: Question, spelling: Spelling) -> Iterator[Question]:
    """Yield the question with such a spelling of its path or host."""
    path = (question.path or "/").partition("?")[0].rstrip("/")
    match spelling:
        case Spelling.PLAIN:
            yield question
        case Spelling.ENCODED_SLASH:
            for spelled in (f"{path}/any%2Fother", f"{path}%2Fother", "/any%2Fother"):
                yield replace(question, path=spelled)
        case Spelling.RESPELLED:
            for spelled in (f"{path}/any%21other", f"{path}%21", f"{path}[", "/any%21other"):
                yield replace(question, path=spelled)
        case Spelling.BAD_HOST:
            named = question.host or _HOST
            for host in (f"bad host.{named}", f"{named}:99999"):
                yield replace(question, host=host)
