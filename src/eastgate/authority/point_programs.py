"""The programs that decide at the points on a way, and the attributes that they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from eastgate.authority.questions import LABELS_UNKNOWN, Arrival, EntryPoint, Question, QuestionError, without_http
from eastgate.authority.questions.derived import derive_values, derived_among
from eastgate.cluster import World
from eastgate.cluster.points import NetworkEnd, Point
from eastgate.dialects import Policy
from eastgate.engine.compiled import Program, VerdictNumber, compile_layers
from eastgate.engine.engine import Engine
from eastgate.engine.verdicts import PASSED
from eastgate.ir import (
    UNOPPOSED,
    AskAll,
    Authorizer,
    Derivation,
    Doubtful,
    Known,
    Layer,
    Outcome,
    Request,
    ask_authorizers,
    authorizers_in,
    in_force,
)
from eastgate.ir.attributes import Attribute

_make = tuple.__new__  # half the time of a call of the class, which every question makes
_MAX_POINTS = 65_536  # cached sequences of points


class PointPrograms:
    """The programs of points, one for each in path order. ALL of them must allow.

    `looked_at` are the attributes that can change the verdict. `asks`: the answer of an authorizer can change it.
    `authorizers` are those that run inside Eastgate. `uncertain`: a policy that may or may not target a point.
    """

    __slots__ = (
        "_finds",
        "asks",
        "authorizers",
        "derivations",
        "derived",
        "doubtful",
        "fields",
        "is_plain",
        "layers",
        "looked_at",
        "looks_at_http",
        "points",
        "programs",
        "uncertain",
    )

    def __init__(
        self,
        points: tuple[Point, ...],
        programs: tuple[Program, ...],
        uncertain: tuple[Point, Policy] | None = None,
    ) -> None:
        self.points = points
        self.programs = programs
        self._finds = tuple((program, program.finder.find) for program in programs)
        self.uncertain = uncertain
        self.layers = tuple(layer for program in programs for layer in program.layers)
        self.looked_at = looked_at_by(self.layers)
        self.looks_at_http = any(attribute.needs_http for attribute in self.looked_at)
        self.fields = tuple(attribute for attribute in self.looked_at if attribute.is_field)
        self.derived = derived_among(self.looked_at)
        self.derivations = derivations_of(self.layers)
        self.doubtful = tuple(each for each in self.derivations if isinstance(each, Doubtful))
        self.authorizers: Mapping[str, Authorizer] = authorizers_in(self.layers)
        chains = (chain for layer in self.layers for chain in layer.chains)
        self.is_plain = not (self.fields or self.derived or self.derivations or self.authorizers)
        """Whether a request needs no further steps: nothing is derived, left out, or asked."""
        self.asks = any(isinstance(stage, AskAll) for chain in chains for stage in chain.stages)

    def in_force(self) -> PointPrograms:
        """Return one program for all points, with their audited policies in force."""
        return self.narrowed(in_force(self.layers))

    def narrowed(self, layers: tuple[Layer, ...]) -> PointPrograms:
        """Return one program for some layers of all points."""
        return PointPrograms(self.points, (compile_layers(layers),), self.uncertain)

    def decide(self, arrival: Arrival) -> ArrivalVerdict:
        """Decide about a request that arrives at these points: by the first denial, or the last acceptance."""
        request = arrival[1]  # a tuple index is quicker than a name, and every question does this
        deciding, last = None, PASSED
        for program, find in self._finds:
            verdict = find(request)
            if not verdict & 1:
                return _make(ArrivalVerdict, (arrival, self, program, verdict))
            if verdict != PASSED:
                deciding, last = program, verdict
        return _make(ArrivalVerdict, (arrival, self, deciding, last))

    # Requests

    def complete(self, values: dict[Attribute, Known], question: Question) -> None:
        """Add the derived values, if a layer looks at them."""
        if self.derived:
            values.update(derive_values(question, self.derived))
        if self.derivations:
            raw = question.raw
            for derivation in self.derivations:
                values.update(derivation.derive(values, raw))

    def arrival(self, entry: EntryPoint, values: dict[Attribute, Known], question: Question) -> Arrival:
        """Return the request with these known values, and all values that follow from them here."""
        if entry.hides_http:
            self.complete(values, question)
            return Arrival(entry, without_http(values))
        if self.fields:
            leave_out_others(values, question, self.fields)
        self.complete(values, question)
        within = entry.condition() if entry.condition is not None and self.looks_at_http else None
        request = Request(values, question.external_auth, within=within)
        return Arrival(entry, ask_authorizers(request, question.raw, self.authorizers) if self.authorizers else request)

    def arrivals(self, entry: EntryPoint, values: dict[Attribute, Known], question: Question) -> list[Arrival]:
        """Return the request with these known values, and a variant for each doubtful value."""
        if not self.doubtful:
            return [self.arrival(entry, values, question)]
        others = [each.otherwise(values) for each in self.doubtful]
        cases = [values, *({**values, **other[0]} for other in others if other is not None)]
        return [self.arrival(entry, case, question) for case in cases]


class ArrivalVerdict(NamedTuple):
    """The verdict about an arrival `at` its points: the program that decides, and the number of its verdict."""

    arrival: Arrival
    at: PointPrograms
    program: Program | None
    verdict: VerdictNumber

    @property
    def allowed(self) -> bool:
        """Return whether the arrival is allowed."""
        return self.verdict & 1 == 1

    @property
    def outcome(self) -> Outcome:
        """Return the outcome of the layer that decided."""
        return UNOPPOSED if self.program is None else self.program.outcome(self.verdict)


class ProgramIndex(dict[EntryPoint, PointPrograms]):
    """The programs of the points of each entry, by its identity. They are cached until something changes."""

    def __init__(self, engine: Engine[Policy], world: World) -> None:
        super().__init__()
        self._engine = engine
        self._world = world
        self._known: dict[tuple[Point, ...], PointPrograms] = {}

    def __missing__(self, entry: EntryPoint) -> PointPrograms:
        """Find the programs of a new entry: cached ones are found without a call."""
        if len(self) >= _MAX_POINTS:
            self.clear()
        found = self[entry] = self.at(entry.points)
        return found

    def at(self, points: tuple[Point, ...]) -> PointPrograms:
        """Return the programs of points."""
        found = self._known.get(points)
        if found is None:
            if len(self._known) >= _MAX_POINTS:
                self._known.clear()
            programs = tuple(map(self._engine.program, points))
            found = self._known[points] = PointPrograms(points, programs, self._uncertain(points))
        return found

    def _uncertain(self, points: Sequence[Point]) -> tuple[Point, Policy] | None:
        """Return a point with a policy that may or may not target it."""
        uncertain = ((point, self._engine.uncertain(point)) for point in points)
        found = next(((point, policies[0]) for point, policies in uncertain if policies), None)
        if found is not None or not any(isinstance(point, NetworkEnd) for point in points):
            return found
        from eastgate.authority.questions.labels import unlabelled_peer  # many manifests have no such policies

        return unlabelled_peer(self._engine, self._world, points)


def looked_at_by(layers: Iterable[Layer]) -> frozenset[Attribute]:
    """Return the attributes that can change the verdicts of layers."""
    return frozenset[Attribute]().union(*(layer.looks_at for layer in layers))


def derivations_of(layers: Iterable[Layer]) -> tuple[Derivation, ...]:
    """Return the derivations of layers: the values that they derive from the rest of a request."""
    return tuple(dict.fromkeys(derivation for layer in layers for derivation in layer.derivations))


def leave_out_others(values: dict[Attribute, Known], question: Question, looked_at: Iterable[Attribute]) -> None:
    """Set to absent all headers and query parameters that the question does not name, if it names any."""
    for attribute in looked_at:
        given = question.headers if attribute.is_header else question.path
        if given is not None and attribute not in values:
            values[attribute] = None


def unlabelled(point: Point, policy: Policy) -> QuestionError:
    """Return the error for a policy that may or may not target a point."""
    message = f"{policy.ref} selects by a label that a cluster adds to pods, and {point} is derived from a template"
    return QuestionError(LABELS_UNKNOWN, message, f"give real Pods, or fix the policy ({policy.span.location})")
