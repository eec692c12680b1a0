"""Asks about one request on each way of a question that has an MCP message and no HTTP attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from eastgate.authority.authority import Authority
from eastgate.authority.questions import Question, QuestionError
from eastgate.basics.records import dataclass
from eastgate.ir import Known, Predicate, Request
from eastgate.ir.attributes import HOST, PATH, SNI, Attribute, AttributeKind
from eastgate.ir.symbolic.cells import OTHER
from eastgate.ir.symbolic.trees import truth
from eastgate.ir.symbolic.witnesses import GaveUp, witness

_MAX_WAYS = 200  # number of ways to ask about
_PATHS = ("/", "/mcp")  # usual paths, for a way that any path takes
_UNNAMED_VALUE = "any-other"  # a name in no rule
_NO_HEADERS = {"accept": "application/json"}  # the headers of a request without any header that routes look at


@dataclass(frozen=True, slots=True)
class AskedWay:
    """A way, a question about one request that takes it, and the answer. `always`: all requests on it are allowed."""

    where: str
    question: Question
    allowed: bool
    always: bool


def ask_ways(question: Question, authority: Authority) -> list[AskedWay]:
    """Ask about one request on each way that a question may take, if such a request is found."""
    return [asked for way in islice(authority.ways(question), _MAX_WAYS) if (asked := _ask(question, way, authority))]


def _ask(question: Question, way: tuple[str, Predicate, bool], authority: Authority) -> AskedWay | None:
    where, condition, always = way
    try:
        taking = witness(condition)
        asked = None if taking is None else _with_http(question, _plainer(taking, condition).values)
        decision = None if asked is None else authority.decide(asked)
    except (GaveUp, QuestionError):
        return None
    if asked is None or decision is None or all(where != taken for taken, _ in decision.ways):
        return None
    return AskedWay(where, asked, decision.allowed, always and decision.allowed)


def _plainer(request: Request, condition: Predicate) -> Request:
    """Return a request with a usual path instead of an arbitrary one, if it still meets the condition."""
    if OTHER not in str(request.values.get(PATH, OTHER)):
        return request
    usual = (request.with_value(PATH, path) for path in _PATHS)
    return next((plain for plain in usual if truth(condition, plain)), request)


def _with_http(question: Question, values: Mapping[Attribute, Known]) -> Question:
    """Return the question with an HTTP request that has these values."""
    headers = {name.key: [*_texts(value)] for name, value in values.items() if name.is_header and value is not None}
    looks_at_headers = any(name.is_header for name in values)
    host, sni = (next(map(_host, _texts(values.get(name))), None) for name in (HOST, SNI))
    return replace(
        question,
        method="POST",
        path=_path(values),
        host=host,
        sni=sni if question.sni is None else question.sni,
        headers=headers or (_NO_HEADERS if looks_at_headers else None),
    )


def _host(text: str) -> str:
    return f"{text}.example" if text == _UNNAMED_VALUE else text


def _path(values: Mapping[Attribute, Known]) -> str:
    path = "/" + next(_texts(values.get(PATH)), "").removeprefix("/")
    pairs = [
        f"{name.key}={text}"
        for name, value in values.items()
        if name.kind is AttributeKind.QUERY
        for text in _texts(value)
    ]
    return f"{path}?{'&'.join(pairs)}" if pairs else path


def _texts(value: Known) -> Iterator[str]:
    """Yield each value of an attribute. A value that no rule names becomes `any-other`."""
    for each in value if isinstance(value, tuple) else () if value is None else (value,):
        yield str(each).replace(OTHER, _UNNAMED_VALUE)
