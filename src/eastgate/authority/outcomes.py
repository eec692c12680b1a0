"""Examples of both outcomes of a partial question: the values to add for an allow, and for a deny.

Every example was asked, and is an answer of `check`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import IPv4Address, ip_address
from itertools import count, islice, product

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.filling import PARTS, with_values
from eastgate.authority.message_ways import AskedWay, ask_ways
from eastgate.authority.questions import Question, QuestionError
from eastgate.basics.records import dataclass
from eastgate.ir import (
    And,
    InNetwork,
    Is,
    Layer,
    Matcher,
    OneOf,
    Or,
    Predicate,
    Prefix,
    Present,
    Request,
    Suffix,
    Value,
)
from eastgate.ir.attributes import (
    ADDRESS,
    FORWARDED_ADDRESS,
    HOST,
    METHOD,
    PATH,
    PORT,
    SNI,
    Attribute,
)
from eastgate.ir.symbolic.stages import order_chain

OTHERWISE = "otherwise"
"""The condition for all requests that meet no other condition of a Depends."""
WITHOUT_TOKEN, INVALID_TOKEN = "without a token", "with an invalid token"
"""Conditions that only tokens decide."""
_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")
_MAX_RULES = 30  # for each layer
_MAX_TRIES = 200
_MAX_CANDIDATES = 100
_TEST_NETWORK = int(IPv4Address("192.0.2.1"))


@dataclass(frozen=True, slots=True)
class Examples:
    """Words of a command line: added to a question, `allow` makes it allowed and `deny` makes it denied.

    `allowed` is the question with `allow` added.
    """

    allow: tuple[str, ...]
    deny: tuple[str, ...] | None
    depends: Depends | None = None
    allowed: Question | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return {"allow": list(self.allow), "deny": list(self.deny) if self.deny is not None else None}


@dataclass(frozen=True, slots=True)
class Depends:
    """The conditions that allow a partial question and those that deny it, as text, and the arguments of an allowed
    check.

    A condition is an entry that a message may lead to, or with `is_condition` a condition on requests. `options` are
    the options of a question with such a condition.
    """

    allow: tuple[str, ...]
    deny: tuple[str, ...]
    example: tuple[str, ...]
    is_condition: bool = False
    options: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return {"allow": list(self.allow), "deny": list(self.deny), "example": list(self.example)}


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """A decision, and the conditions that it depends on, with examples of both verdicts. A decision that depends
    denies.

    `allowed_by` is the decision about the allowed example.
    """

    decision: Decision
    examples: Examples | None = None
    depends: Depends | None = None
    allowed_by: Decision | None = None


Decide = Callable[[Question], Decision]


def examples(
    decision: Decision, authority: Authority, decide: Decide | None = None, allowed: Question | None = None
) -> Examples | None:
    """Return examples for a question that is denied because it is partial; None if no allowed example was found.

    `decide` answers questions in place of the authority. `allowed` is an allowed example, if one is already known.
    """
    if decision.allowed:
        return None
    question, search = decision.question, _ExampleSearch(decision, decide or authority.decide)
    asked = ask_ways(question, authority) if question.is_bare_message else []
    if allowed is not None:
        allowed = search.shortened(allowed)
    else:
        allowed = next((way.question for way in asked if way.allowed), None) or search.allowed()
    if allowed is None:
        return None
    denied = next((way.question for way in asked if not way.allowed), None) or search.denied(allowed)
    depends = None
    if question.is_bare_message:
        if all(way.question != allowed for way in asked):
            where = authority.decide(allowed).arrival.where
            asked = [
                *(way for way in asked if way.where != where),
                AskedWay(where, allowed, allowed=True, always=False),
            ]
        depends = _depends(asked, allowed, question)
    return Examples(
        added_arguments(allowed, question),
        added_arguments(denied, question) if denied is not None else None,
        depends,
        allowed,
    )


def _depends(asked: list[AskedWay], allowed: Question, given: Question) -> Depends:
    allow, deny = list[str](), list[str]()
    for way in asked:
        if not way.allowed:
            deny.append(way.where)
        elif way.always:
            allow.append(way.where)
        else:
            allow.append(f"{way.where} with {shlex.join(added_arguments(way.question, given))}")
            deny.append(f"{way.where} otherwise")
    return Depends(tuple(dict.fromkeys(allow)), tuple(dict.fromkeys(deny)), tuple(allowed.arguments))


def added_arguments(question: Question, given: Question) -> tuple[str, ...]:
    """Return the arguments of a question that another question does not have."""
    words, known = (replace(each, plaintext=False, no_token=False).arguments for each in (question, given))
    pairs = zip(words[::2], words[1::2], strict=True)
    flag = ("--no-token",) if question.no_token and not given.no_token else ()
    return (*(word for pair in pairs for word in pair if not set(known) >= set(pair)), *flag)


class _ExampleSearch:
    def __init__(self, decision: Decision, decide: Decide) -> None:
        self._question = decision.question
        self._request = decision.arrival.request
        self._layers = decision.layers
        self._decided_by = decide
        self._is_unknown = bool(decision.unknown)
        self._atoms = [atom for layer in decision.layers for atom in layer.atoms(observed=True) if isinstance(atom, Is)]

    def allowed(self) -> Question | None:
        """Return an allowed question with as few additions as possible."""
        found = next(self._allowed(), None) if self._is_unknown else None
        return None if found is None else self.shortened(found)

    def _allowed(self) -> Iterator[Question]:
        """Yield allowed questions: with values that a rule of each layer demands, and unnamed values for the rest."""
        ways = [_unique([{}, *islice(self._fills(layer), _MAX_RULES)]) for layer in self._layers]
        others = self._others()
        for choice in islice(product(*ways), _MAX_TRIES):
            wanted: dict[Attribute, Value] = {}
            for fill in choice:
                wanted.update(fill)
            for values in (wanted, {**others, **wanted}):
                question = with_values(self._question, values)
                if values and (decision := self._decide(question)) is not None and decision.allowed:
                    yield question

    def _fills(self, layer: Layer) -> Iterator[dict[Attribute, Value]]:
        """Yield, for each rule that allows, the values that it demands of unknown attributes."""
        cases = [(case.when, case.chain) for case in layer.cases] + [(And(()), layer.otherwise)]
        for when, chain in cases:
            before = _fill(when, self._request)
            stages = order_chain(chain)
            for arm in (arm for stage in stages for arm in stage.accepting) if before is not None else ():
                fill = _fill(arm.when, self._request)
                if fill is not None:
                    yield {**(before or {}), **fill}
            if before and not any(stage.denies_by_default for stage in stages):
                yield before

    def _others(self) -> dict[Attribute, Value]:
        """Return a value in no rule for each unknown attribute that a question can name."""
        looked_at = frozenset().union(*(layer.looks_at for layer in self._layers))
        unknown = [attribute for attribute in sorted(looked_at) if attribute not in self._request.values]
        return {attribute: self._other(attribute) for attribute in unknown if attribute in PARTS}

    def _other(self, attribute: Attribute) -> Value:
        matchers = [atom.matcher for atom in self._atoms if atom.attribute == attribute]
        values = list(islice(_ordinary(attribute), _MAX_CANDIDATES))
        return next((value for value in values if not any(matcher.contains(value) for matcher in matchers)), values[0])

    def shortened(self, question: Question) -> Question:
        """Return the question without the parts that are not needed for an allow."""
        for part in (
            "sni",
            "forwarded_for",
            "source_ip",
            "host",
            "no_token",
            "claims",
            "headers",
            "tool",
            "mcp_method",
            "path",
            "method",
            "port",
        ):
            given = getattr(self._question, part)
            shorter = replace(question, **{part: given})
            if (
                getattr(question, part) != given
                and (decision := self._decide(shorter)) is not None
                and decision.allowed
            ):
                question = shorter
        return question

    def denied(self, allowed: Question) -> Question | None:
        """Return the nearest question that is denied for all values of its unknown attributes."""
        candidates = [
            replace(allowed, **{part: self._other(attribute)})  # type: ignore[arg-type]
            for attribute, part in sorted(PARTS.items(), key=lambda item: item[1] == "port")
            if getattr(allowed, part) != getattr(self._question, part)
        ]
        candidates.append(replace(allowed, headers=self._question.headers or {}, claims=self._question.claims))
        others = {PARTS[attribute]: value for attribute, value in self._others().items()}
        for candidate in candidates:
            rest = {part: value for part, value in others.items() if getattr(candidate, part) is None}
            for question in (candidate, replace(candidate, **rest)):  # type: ignore[arg-type]
                decision = self._decide(question)
                if decision is not None and not decision.allowed and not decision.unknown:
                    return question
        return None

    def _decide(self, question: Question) -> Decision | None:
        try:
            return self._decided_by(question)
        except QuestionError:
            return None


def _unique(fills: list[dict[Attribute, Value]]) -> list[dict[Attribute, Value]]:
    return [fill for position, fill in enumerate(fills) if fill not in fills[:position]]


def _fill(predicate: Predicate, request: Request) -> dict[Attribute, Value] | None:
    """Return values for unknown attributes that satisfy a predicate; None if it cannot hold."""
    match predicate:
        case Is(attribute, matcher):
            if attribute in request.values:
                return {} if predicate.accepts(request.values[attribute]) else None
            value = _value(attribute, matcher)
            return {attribute: value} if value is not None else None
        case And(parts):
            values: dict[Attribute, Value] = {}
            for part in parts:
                more = _fill(part, request)
                if more is None:
                    return None
                values = {**more, **values}
            return values
        case Or(parts):
            return next((more for part in parts if (more := _fill(part, request)) is not None), None)
        case _:
            return {}


def _value(attribute: Attribute, matcher: Matcher) -> Value | None:
    match matcher:
        case OneOf(values):
            return min(values, key=lambda value: (str(type(value)), value), default=None)
        case Prefix(text):
            return f"{text}x"
        case Suffix(text):
            return f"{'/' if attribute == PATH else ''}x{text}"
        case InNetwork(networks):
            return str(networks[0][0]) if networks else None
        case Present():
            return "x"
        case _:
            return None


def _ordinary(attribute: Attribute) -> Iterator[Value]:
    """Yield values of an attribute, without end."""
    if attribute == PORT:
        yield from (8080, 80, 443)
        yield from count(9000)
    if attribute == METHOD:
        yield from reversed(_METHODS)
    for number in count():
        suffix = str(number) if number else ""
        if attribute == PATH:
            yield f"/other{suffix}"
        elif attribute in (HOST, SNI):
            yield f"other{suffix}.example"
        elif attribute in (ADDRESS, FORWARDED_ADDRESS):
            yield str(ip_address(_TEST_NETWORK + number * 65_537))
        elif attribute == METHOD:
            yield f"OTHER{suffix}"
        else:
            yield f"other{suffix}"
