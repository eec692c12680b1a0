"""Decisions: the answer to a question, who gave it, and why."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence

from eastgate.authority.auditing import Audited, audited_by, matched
from eastgate.authority.enforcement import Enforcers, PolicyEnforcement, caller_doubts, unenforced_text
from eastgate.authority.questions import Arrival, Question
from eastgate.authority.trace_json import trace_to_json
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.points import Direction, NetworkEnd, Point
from eastgate.cluster.unread import EnforcementPlane, Handling, Standing, Unconsidered, could_change, standing
from eastgate.dialects.base import Condition
from eastgate.engine.compiled import Program, compile_layers
from eastgate.engine.trace import Trace, trace
from eastgate.engine.verdicts import PASSED
from eastgate.ir import (
    REFUSED_HOST,
    REFUSED_SPELLING,
    UNOPPOSED,
    Layer,
    Origin,
    Outcome,
    Refusal,
    Request,
    Rule,
    Ruling,
    Unroutable,
    atoms,
    in_force,
)
from eastgate.ir.attributes import APPLICATION, PORT, SOURCE_WORKLOAD, Attribute
from eastgate.ir.paths import is_sensitive

_REFUSALS: dict[int, Refusal] = {refusal.value: refusal for refusal in Refusal}
_NEAREST = 3  # rules that a trace names where none matched


class Verdict(enum.StrEnum):
    """The answer to a question."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True, eq=False)
class Stop:
    """A destination, and the programs that decide there, one for each point of enforcement in path order."""

    where: str
    points: tuple[Point, ...]
    programs: tuple[Program, ...]
    layers: tuple[Layer, ...]

    def would_be(self, request: Request, question: Question) -> tuple[Stop, Request]:  # noqa: ARG002
        """Return the destination as if its audited policies were in force, and the request as it would see it."""
        layers = in_force(self.layers)
        return Stop(self.where, self.points, (compile_layers(layers),), layers), request

    def decide(self, request: Request) -> tuple[Program | None, int]:
        """Return the program and the verdict that decided: a denial, or the last acceptance. ALL points must allow."""
        deciding: tuple[Program | None, int] = (None, PASSED)
        for program in self.programs:
            verdict = program.finder.find(request)
            if not verdict & 1:
                return program, verdict
            if verdict != PASSED:
                deciding = program, verdict
        return deciding


class Decision:
    """The answer to a question, who gave it, and why.

    It is about one arrival: the first that is denied, or the first of all where all are allowed. The trace, the
    reason and the conditions are made when somebody asks for them.
    """

    __slots__ = (
        "_arrivals",
        "_audit",
        "_conditions",
        "_enforcers",
        "_outcome",
        "_program",
        "_request",
        "_stop",
        "_trace",
        "_verdict",
        "allowed",
        "layers",
        "question",
        "unconsidered",
        "ways",
    )

    question: Question
    allowed: bool
    ways: tuple[tuple[str, bool], ...]
    """All the places that the question leads to, and whether each allows."""
    unconsidered: Unconsidered
    """What could not be considered."""
    layers: tuple[Layer, ...]
    """The layers on the way, of which the last that was asked decided."""

    def __init__(
        self,
        question: Question,
        stop: Stop,
        request: Request,
        decided: tuple[Program | None, int],
        ways: tuple[tuple[str, bool], ...],
        unconsidered: Unconsidered,
        conditions: Callable[[Stop], tuple[tuple[str, Condition], ...]],
        enforcers: Enforcers,
        arrivals: Sequence[tuple[Stop, Request, tuple[Program | None, int]]],
    ) -> None:
        self.question = question
        self._stop = stop
        self._request = request
        self._program, verdict = decided
        self._verdict = verdict
        self.allowed = verdict & 1 == 1
        self.layers = stop.layers
        self.ways = ways
        self.unconsidered = unconsidered
        self._conditions = conditions
        self._enforcers = enforcers
        self._arrivals = arrivals
        self._outcome: Outcome | None = None
        self._trace: Trace | None = None
        self._audit: tuple[Audited, ...] | None = None

    def narrowed(self, layers: tuple[Layer, ...], request: Request) -> Decision:
        """Return the decision of some of the layers on a request of which other things are known."""
        program = compile_layers(layers)
        stop = Stop(self._stop.where, self._stop.points, (program,), layers)
        decided = stop.decide(request)
        return Decision(
            self.question,
            stop,
            request,
            decided,
            self.ways,
            self.unconsidered,
            self._conditions,
            self._enforcers,
            [(stop, request, decided)],
        )

    def __bool__(self) -> bool:
        return self.allowed

    def __repr__(self) -> str:
        return f"<Decision {self.verdict}: {self.question}>"

    @property
    def arrival(self) -> Arrival:
        """Return the request that this is about, and where it arrives."""
        return Arrival(self._stop.where, self._stop.points, self._request)

    @property
    def deciding_point(self) -> Point | None:
        """Return the point of enforcement that decided; None where none did."""
        points, programs = self._stop.points, self._stop.programs
        if len(points) != len(programs):  # narrowed: one program for the whole way
            return None
        return next((point for point, program in zip(points, programs, strict=True) if program is self._program), None)

    @property
    def outcome(self) -> Outcome:
        """Return the outcome of the layer that decided."""
        if self._outcome is None:
            self._outcome = _outcome_of((self._program, self._verdict))
        return self._outcome

    @property
    def audit(self) -> tuple[Audited, ...]:
        """Return what audited policies would do: the would-be decision where one of them decides, and rules that log.

        The policies are evaluated as if they were in force beside the others. The verdict is not theirs.
        """
        if self._audit is None:
            self._audit = tuple(dict.fromkeys([*self._would_be()[1], *self._logged()]))
        return self._audit

    @property
    def would_be(self) -> Outcome:
        """Return the outcome if every audited policy were in force; the outcome itself where none is audited."""
        return self._would_be()[0]

    def _would_be(self) -> tuple[Outcome, tuple[Audited, ...]]:
        """Return the would-be outcome: the first denial, or that of the first arrival where all would be allowed."""
        found: list[tuple[Outcome, Stop, Outcome, tuple[Attribute, ...]]] = []
        for stop, request, decided in self._arrivals:
            now = would = _outcome_of(decided)
            unknown: tuple[Attribute, ...] = ()
            if any(layer.audit is not None for layer in stop.layers):
                stop_then, request_then = stop.would_be(request, self.question)
                would = _outcome_of(stop_then.decide(request_then))
                unknown = () if would.allowed else trace(stop_then.layers, request_then, nearest=0).unknown
            found.append((would, stop, now, unknown))
        denials = [each for each in found if not each[0].allowed]
        would = (denials or found)[0][0]
        told = (tuple(audited_by(stop.layers, now, then, unknown)) for then, stop, now, unknown in denials or found)
        changes = self.allowed is not would.allowed
        return would, next((each for each in told if each and each[0].changes is changes), ())

    def _logged(self) -> Iterator[Audited]:
        observes = any(chain.has_audit for layer in self.layers for chain in layer.chains)
        return matched(self.trace()) if observes else iter(())

    @property
    def conditions(self) -> tuple[tuple[str, Condition], ...]:
        """Return the conditions that the policies on the way would show in their status."""
        return self._conditions(self._stop)

    @property
    def points(self) -> frozenset[Point]:
        """Return all points of enforcement that the question leads to."""
        return frozenset(point for stop, _, _ in self._arrivals for point in stop.points)

    @property
    def enforcement(self) -> tuple[PolicyEnforcement, ...]:
        """Return who enforces the policies on the way, wherever the question leads, as far as that is known."""
        found = dict.fromkeys(
            each
            for stop, request, _ in self._arrivals
            for point in stop.points
            for each in self._enforcers.at(point)
            if not each.ports or request.values.get(PORT, each.ports[0]) in each.ports
        )
        callers = dict.fromkeys(request.values.get(SOURCE_WORKLOAD) for _, request, _ in self._arrivals)
        for caller in callers:
            if isinstance(caller, str):
                found |= dict.fromkeys(self._enforcers.beside_network(caller, (Direction.EGRESS,)))
        for stop, request, _ in self._arrivals:
            found |= dict.fromkeys(caller_doubts(stop.layers, request.values))
        return tuple(found)

    @property
    def complete(self) -> bool:
        """Return whether nothing that was not considered could change the verdict."""
        return not could_change(self.unconsidered, allowed=self.allowed)

    @property
    def denied(self) -> tuple[str, ...]:
        """Return the destinations that refuse."""
        return tuple(where for where, allowed in self.ways if not allowed)

    @property
    def verdict(self) -> Verdict:
        """Allow or deny."""
        return Verdict.ALLOW if self.allowed else Verdict.DENY

    def stated(self, unread: Handling = Handling.WARN, *, depends: bool = False) -> str:
        """State the verdict for people: ALLOW, DENY or DEPENDS, and its scope, if something unread could change it.

        `depends`: some of the requests that the question may mean are allowed.
        """
        verdict = "DEPENDS" if depends else self.verdict.upper()
        if standing(self.unconsidered, unread, allowed=self.allowed) is Standing.WHOLE:
            return verdict
        decisive = could_change(self.unconsidered, allowed=self.allowed)
        beside = all(met.unread.kind.plane is EnforcementPlane.NETWORK for met in decisive)
        return f"{verdict} ({'identity policies only' if beside else 'by what was read'})"

    @property
    def policy(self) -> str | None:
        """Return the policy that decided, as Kind/namespace/name; None where a default did."""
        origin = self.origin
        return str(origin.policy) if origin is not None and origin.policy else None

    @property
    def rule(self) -> int | None:
        """Return the index of the rule that decided in its policy, from 0."""
        origin = self.origin
        return origin.index if origin is not None and origin.policy else None

    @property
    def span(self) -> Span | None:
        """Return the span of the rule that decided; None where a default decided."""
        origin = self.origin
        return origin.span if origin is not None else None

    @property
    def origin(self) -> Origin | None:
        """Return the source of the rule that decided; where that asked an authorizer, of what decided there."""
        rule = self.outcome.rule
        if rule is None:
            return None
        ruling = next(self._rulings(rule), None)
        return rule.origin if ruling is None or ruling.origin is None else ruling.origin

    def _rulings(self, rule: Rule) -> Iterator[Ruling]:
        """Yield the rulings of authorizers that a rule asks, and that say the same as this decision."""
        asks = (ask for layer in self.layers for ask in layer.asks if ask.rule is rule)
        answers = (self._request.answers.get(ask.authorizer) for ask in asks)
        return (each for each in answers if isinstance(each, Ruling) and each.allowed == self.allowed)

    @property
    def location(self) -> str:
        """File and line of the rule that decided, or that it was a default."""
        span = self.span
        return span.location if span is not None else "a default"

    @property
    def status(self) -> int:
        """Return the HTTP status that the client sees, 200 where it is allowed; 0 is a closed connection."""
        return self.outcome.status

    @property
    def refusal(self) -> Refusal | int | None:
        """Return how a denied client is refused; None where it is allowed. An authorizer may choose a status."""
        return None if self.allowed else _REFUSALS.get(self.status, self.status)

    @property
    def ruling(self) -> Ruling | None:
        """Return the ruling that denied; None where no authorizer did, or one that gives no reasons."""
        rule = None if self.allowed else self.outcome.rule
        return next(self._rulings(rule), None) if rule is not None else None

    def trace(self, nearest: int = 3) -> Trace:
        """Evaluate again, step by step, and return what every layer and stage said."""
        if self._trace is None or nearest != _NEAREST:
            made = trace(self.layers, self._request, nearest=nearest)
            if nearest != _NEAREST:
                return made
            self._trace = made
        return self._trace

    @property
    def unknown(self) -> tuple[Attribute, ...]:
        """Return the attributes that the question leaves out and that decide: with other values it may be allowed."""
        return () if self.allowed or self.is_fully_known else self.trace().unknown

    @property
    def is_fully_known(self) -> bool:
        """Return whether everything is known of the request that any rule looks at."""
        values = self._request.values
        return all(attribute in values for layer in self.layers for attribute in layer.looks_at)

    @property
    def looks_at_protocol(self) -> bool:
        """Return whether a layer on the way tells HTTP from bytes."""
        return any(APPLICATION in layer.looks_at for stop, _, _ in self._arrivals for layer in stop.layers)

    @property
    def leaves_protocol_open(self) -> bool:
        """Return whether the question says nothing of HTTP, and a layer on the way tells HTTP from bytes."""
        return not self.question.is_http and self.looks_at_protocol

    @property
    def reason(self) -> str:
        """Return the answer in one sentence."""
        return _reason(self)

    def to_json(self) -> dict[str, object]:
        """Return the answer as plain data: the `-o json` of `check`."""
        span = self.span
        return {
            "verdict": self.verdict.value,
            "layer": self.outcome.layer,
            "stage": self.outcome.stage,
            "policy": self.policy,
            "rule": self.rule,
            "status": self.status,
            "file": span.file if span else None,
            "line": span.line if span else None,
            "reason": self.reason,
            "at": self._stop.where,
            "ways": [{"at": where, "verdict": "allow" if allowed else "deny"} for where, allowed in self.ways],
            "complete": self.complete,
            "unconsidered": [met.to_json() for met in self.unconsidered.matches],
            "rejectedPolicies": self.unconsidered.rejected,
            "enforcement": [each.to_json() for each in self.enforcement],
            "audit": [each.to_json() for each in self.audit],
            "conditions": [{"policy": policy, **condition.to_json()} for policy, condition in self.conditions],
            "trace": trace_to_json(self.trace()),
        }


def _outcome_of(decided: tuple[Program | None, int]) -> Outcome:
    program, verdict = decided
    return UNOPPOSED if program is None else program.outcome(verdict)


DEAD_ENDS: dict[str | None, str] = {
    Unroutable.NO_ROUTE: "no route of the gateway matches",
    Unroutable.NO_INBOUND_ROUTE: "no route of the Server matches",
    Unroutable.NO_BACKEND: "the route leads to no backend",
    Unroutable.REFERENCE_NOT_GRANTED: (
        "the route refers to a backend of another namespace, and no ReferenceGrant there lets it"
    ),
    Unroutable.BACKEND_NOT_DECLARED: "the route refers to a backend that no manifest declares",
    Unroutable.UNSUPPORTED_FILTER: "the route has a filter that Eastgate does not know, and that may refuse requests",
    Unroutable.NO_AUTH_CONFIG: "no AuthConfig is for the host",
}

UNASKED: dict[str | None, str] = {
    None: "its path has an encoded slash, backslash or NUL, and a policy looks at paths",
    REFUSED_HOST: "what it names as its host is no host with a port up to 65535, and the port is read as HTTP",
    REFUSED_SPELLING: "its path is not in its canonical spelling, and an expression or a pattern looks at it",
}


def _reason(decision: Decision) -> str:
    outcome, where = decision.outcome, decision.arrival.where
    if outcome.rule is not None:
        does = "allows" if outcome.allowed else "denies"
        ruling = decision.ruling
        end = _end_beside(decision)
        text = f"{decision.origin} {does} it" + (f" at pod {end.workload}" if end is not None else "")
        text += f": {ruling.text}" if ruling is not None else ""
    elif outcome.allowed:
        text = f"nothing denies it at {where}" if decision.layers else f"no policy targets {where}"
    elif _is_exhausted(decision):
        text = "too much of the question is unknown to be sure that it is allowed"
    elif outcome.stage in DEAD_ENDS:
        text = DEAD_ENDS[outcome.stage]
    elif outcome.is_unasked:
        text = UNASKED[outcome.stage] + _looking_at_spelling(decision)
    else:
        level = f" ({outcome.layer})" if len(decision.layers) > 1 else ""
        text = f"no rule allows it at {where}{level}"
    unenforced = unenforced_text(decision.enforcement)
    if unenforced is not None:
        text = unenforced if outcome.allowed and outcome.rule is None else f"{text}; {unenforced}"
    if decision.unknown:
        text += f"; unknown: {', '.join(map(str, decision.unknown))}"
    if decision.denied and len(decision.ways) > 1:
        text += f" (denied at {len(decision.denied)} of {len(decision.ways)}: {', '.join(decision.denied)})"
    return text


def _end_beside(decision: Decision) -> NetworkEnd | None:
    """Return the end at which the policy that decided applies, if it selects a pod that it cannot be about, too."""
    origin, end = decision.origin, decision.deciding_point
    if origin is None or not isinstance(end, NetworkEnd) or end.labels is not None:
        return None
    beside = {ref for each in decision.enforcement if not each.applies for ref in each.policies}
    return end if origin.policy in beside else None


def _looking_at_spelling(decision: Decision) -> str:
    """Return the first rule that looks at the spelling of the path, if the path is refused for its spelling."""
    if decision.outcome.stage is not REFUSED_SPELLING:
        return ""
    layers = [layer for layer in decision.layers if layer.name == decision.outcome.layer]
    rules = (rule for layer in layers for chain in layer.chains for rule in chain.rules(observed=False))
    looking = (rule for rule in rules if any(map(is_sensitive, atoms(rule.when))))
    return next((f": {rule.origin}" for rule in looking), "")


def _is_exhausted(decision: Decision) -> bool:
    """Return whether the search for a completion that is denied was given up."""
    layers = () if decision.is_fully_known else decision.trace().layers
    return bool(layers) and layers[-1].exhausted
