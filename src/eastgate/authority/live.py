"""Waiting requests: their arrivals, to be decided there with the answers of authorizers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from eastgate.authority.authority import Authority, decider_of
from eastgate.authority.decisions import Decision
from eastgate.authority.point_programs import ArrivalVerdict, PointPrograms, unlabelled
from eastgate.authority.questions import (
    Arrival,
    EntryPoint,
    Question,
    Values,
    message_values,
    request_values,
    without_http,
)
from eastgate.basics.records import dataclass
from eastgate.ir import Known, LiveAnswers, Request
from eastgate.ir.attributes import IDENTITY, PORT, Attribute


@dataclass(frozen=True, slots=True)
class LiveQuestion:
    """A question about a waiting request, and further known attributes.

    `values` are more known attributes. Attributes of `unknown` are unknown, even if the question has them. A header
    that the question does not have is absent if `shown_headers` has its name (None: every name), and otherwise unknown.
    """

    question: Question
    values: Values = field(default_factory=dict)
    unknown: frozenset[Attribute] = frozenset()
    shown_headers: frozenset[str] | None = None

    def leave_out_others(self, values: dict[Attribute, Known], attributes: Iterable[Attribute]) -> None:
        """Set to absent those of these headers and parameters that the request certainly does not have."""
        for attribute in attributes:
            known = self._shows(attribute.key) if attribute.is_header else self.question.path is not None
            if known and attribute not in values and attribute not in self.unknown:
                values[attribute] = None

    def _shows(self, name: str) -> bool:
        return self.shown_headers is None or name in self.shown_headers


class LiveArrivals:
    """The arrivals of a waiting request, with their known attributes.

    They can be decided again and again, with more answers and other messages, until something changes.
    """

    __slots__ = ("_arrivals", "_decider", "_live", "_version")

    def __init__(self, authority: Authority, live: LiveQuestion) -> None:
        """Find the arrivals of the request. Raises QuestionError if they cannot be determined."""
        self._decider = decider_of(authority)
        self._live = live
        self._version = self._decider.version
        self._arrivals = tuple(self._arrive())

    def _arrive(self) -> Iterator[tuple[EntryPoint, PointPrograms, dict[Attribute, Known]]]:
        """Yield each entry with the known attributes of a request there. Raises QuestionError if it is unknown."""
        live, decider, question = self._live, self._decider, self._live.question
        given = {**request_values(question), **live.values}
        shared = {name: value for name, value in given.items() if name not in live.unknown}
        live.leave_out_others(shared, decider.routed_by)
        callers = decider.callers(question)
        for entry in decider.entries(question, shared):
            at = decider.at(entry.points)
            for caller in callers:
                values = {**shared, **caller, **entry.values}
                live.leave_out_others(values, at.fields)
                at.complete(values, question)
                if PORT not in values and PORT not in at.looked_at:
                    values[PORT] = None  # any value does, and a known one is decided faster
                yield entry, at, values

    @property
    def is_current(self) -> bool:
        """Return whether nothing has changed since."""
        return self._version == self._decider.engine.version

    @property
    def looked_at(self) -> frozenset[Attribute]:
        """Return the attributes that can change the enforced decision at the arrivals."""
        return frozenset[Attribute]().union(*(at.looked_at for _, at, _ in self._arrivals))

    def decide(self, answers: LiveAnswers, message: Question | None = None) -> Decision:
        """Return the enforced decision, with the answers that authorizers gave. Raises Pending if an answer is missing.

        `message` is the question with one of several messages. Raises QuestionError if the applicable policies are
        unknown.
        """
        question, more = (self._live.question, {}) if message is None else (message, message_values(message))
        decided: list[ArrivalVerdict] = []
        for entry, at, known in self._arrivals:
            if at.uncertain is not None:
                raise unlabelled(*at.uncertain)
            values = {**known, **more} if more else known
            request = without_http(values) if entry.hides_http else Request(values, question.external_auth)
            asks = at.asks and not entry.hides_http
            joined = answers.attach_to(request, at.authorizers) if asks else request
            is_asked = IDENTITY in values or IDENTITY in at.looked_at  # a known value is decided faster
            verdict = at.decide(Arrival(entry, joined if is_asked else joined.with_value(IDENTITY, None)))
            settled = answers.with_used_answers(joined) if asks else request
            decided.append(verdict._replace(arrival=Arrival(entry, settled)))
            if not verdict.allowed:
                break  # no other authorizer is asked
        return self._decider.answer(question, decided)
