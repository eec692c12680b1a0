"""The requests of a question where they arrive: what is known of each there, and the layers that decide about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from eastgate.authority.decisions import Stop
from eastgate.authority.questions import EntryPoint, Question, Values
from eastgate.authority.questions.arrivals import without_http
from eastgate.authority.questions.derived import derive_values, derived_among
from eastgate.basics.records import dataclass
from eastgate.cluster.points import NetworkEnd, Point
from eastgate.dialects import Policy
from eastgate.engine.compiled import compile_layers
from eastgate.ir import (
    Authorizer,
    Derivation,
    Doubtful,
    Known,
    Layer,
    Origin,
    Outcome,
    Predicate,
    Request,
    ask_authorizers,
    authorizers_in,
    in_force,
)
from eastgate.ir.attributes import Attribute


@dataclass(frozen=True, slots=True, eq=False)
class Crossing(Stop):
    """A point that a question leads to, with the request and the layers there. `uncertain` may target it, or may not.

    `asks`: the answer of an authorizer has a say, be it one that we run or not. `is_plain`: what the question says is
    all that is known of a request.
    """

    values: Values
    authorizers: Mapping[str, Authorizer]
    asks: bool
    repeatable: tuple[Attribute, ...]
    uncertain: tuple[Point, Policy] | None
    allowed_way: tuple[tuple[str, bool], ...]
    denied_way: tuple[tuple[str, bool], ...]
    hides_http: bool
    looked_at: frozenset[Attribute]
    derived: tuple[Attribute, ...]
    derivations: tuple[Derivation, ...]
    doubtful: tuple[Doubtful, ...]
    is_plain: bool
    entry: EntryPoint
    within: Predicate | None

    def complete(self, values: dict[Attribute, Known], question: Question) -> None:
        """Add what is worked out of the rest, where something here looks at it."""
        if self.derived:
            values.update(derive_values(question, self.derived))
        for derivation in self.derivations:
            values.update(derivation.derive(values, question.raw))

    def make_request(self, values: dict[Attribute, Known], question: Question) -> Request:
        """Return the request of which these values are known, with all that follows from them here."""
        if self.hides_http:
            self.complete(values, question)
            return without_http(values)
        leave_out_others(values, question, self.repeatable)
        self.complete(values, question)
        request = Request(values, question.external_auth, within=self.within)
        return ask_authorizers(request, question.raw, self.authorizers) if self.authorizers else request

    def make_requests(self, values: dict[Attribute, Known], question: Question) -> Iterator[Request]:
        """Yield the request of which these values are known, and one for each thing that may be otherwise."""
        others = [each.otherwise(values) for each in self.doubtful]
        yield self.make_request({**values} if others else values, question)
        for other in others:
            if other is not None:
                yield self.make_request({**values, **other[0]}, question)

    def would_be(self, request: Request, question: Question) -> tuple[Stop, Request]:
        """Return the point as if its audited policies were in force, and the request as it would arrive there."""
        layers = in_force(self.layers)
        looked_at = looked_at_by(layers)
        then = replace(
            self,
            programs=(compile_layers(layers),),
            layers=layers,
            authorizers=authorizers_in(layers),
            repeatable=repeatable_of(looked_at),
            looked_at=looked_at,
            derived=derived_among(looked_at),
            derivations=derivations_of(layers),
            within=self.entry.within if any(attribute.needs_http for attribute in looked_at) else None,
        )
        return then, then.make_request(dict(request.values), question)


@dataclass(frozen=True, slots=True)
class ConnectionVerdict:
    """What network policies decide about a connection, at which end; `isolating` are those that close that end.

    `closing` are the audited ones that would, where this is what would be decided with them in force.
    """

    outcome: Outcome
    end: NetworkEnd | None = None
    isolating: tuple[Policy, ...] = ()
    closing: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveQuestion:
    """A question about a request that is waiting, and what is known of it beside the words of the question.

    `entries` say where the request arrives, instead of those words. `values` are more known attributes. Attributes of
    `unknown` are unknown, whatever the question says. A header that the question does not have is absent if
    `shown_headers` has its name (None: every name), else unknown.
    """

    question: Question
    entries: tuple[EntryPoint, ...] | None = None
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


def looked_at_by(layers: Iterable[Layer]) -> frozenset[Attribute]:
    return frozenset[Attribute]().union(*(layer.looks_at for layer in layers))


def repeatable_of(looked_at: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """Return the headers and parameters of queries among attributes."""
    return tuple(attribute for attribute in looked_at if attribute.is_field)


def derivations_of(layers: Iterable[Layer]) -> tuple[Derivation, ...]:
    return tuple(dict.fromkeys(derivation for layer in layers for derivation in layer.derivations))


def leave_out_others(values: dict[Attribute, Known], question: Question, looked_at: Iterable[Attribute]) -> None:
    """Say of headers, and of parameters of the query, that those are all which the question gives, if it gives any."""
    for attribute in looked_at:
        given = question.headers if attribute.is_header else question.path
        if given is not None and attribute not in values:
            values[attribute] = None
