"""Decisions: the answer to a question, the policy that decided, and the reason."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

from eastgate.authority.auditing import Audited, audited_by, matched
from eastgate.authority.enforcement import Enforcers, PolicyEnforcement, caller_doubts
from eastgate.authority.point_programs import ArrivalVerdict
from eastgate.authority.questions import Arrival, Question
from eastgate.authority.trace_json import trace_to_json
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import brief
from eastgate.cluster.points import Direction, Point
from eastgate.cluster.unread import EnforcementPlane, Handling, Standing, Unconsidered, could_change, parts_of, standing
from eastgate.dialects.base import Condition
from eastgate.engine.trace import Trace, trace
from eastgate.ir import (
    Layer,
    Origin,
    Outcome,
    Refusal,
    Request,
    Rule,
    Ruling,
)
from eastgate.ir.attributes import APPLICATION, PORT, SOURCE_WORKLOAD, Attribute

_REFUSALS: dict[int, Refusal] = {refusal.value: refusal for refusal in Refusal}
_MAX_NEAREST_RULES = 3  # rules that a trace names if none matched


class Verdict(enum.StrEnum):
    """The answer to a question."""

    ALLOW = "allow"
    DENY = "deny"


class Decision:
    """The answer to a question, the policy that decided, and the reason.

    It is about one arrival: the first denied one, or the first of all if all are allowed. The trace, the reason and the
    conditions are computed on first access.
    """

    __slots__ = (
        "_audit",
        "_decided",
        "_enforcers",
        "_every",
        "_outcome",
        "_trace",
        "allowed",
        "layers",
        "question",
        "unconsidered",
    )

    question: Question
    allowed: bool
    unconsidered: Unconsidered
    """Objects that Eastgate did not read or could not consider."""
    layers: tuple[Layer, ...]
    """The layers on the way, up to the layer that decided."""

    def __init__(
        self,
        question: Question,
        decided: ArrivalVerdict,
        every: Sequence[ArrivalVerdict],
        unconsidered: Unconsidered,
        enforcers: Enforcers,
    ) -> None:
        self.question = question
        self.allowed = decided.verdict & 1 == 1
        self.layers = decided.at.layers
        self.unconsidered = unconsidered
        self._decided = decided
        self._every = every
        self._enforcers = enforcers
        self._outcome: Outcome | None = None
        self._trace: Trace | None = None
        self._audit: tuple[Audited, ...] | None = None

    def narrowed(self, layers: tuple[Layer, ...], request: Request) -> Decision:
        """Return the decision of some of the layers about a request with other known attributes."""
        arrival = Arrival(self._decided.arrival.entry, request)
        decided = self._decided.at.narrowed(layers).decide(arrival)
        return Decision(self.question, decided, [decided], self.unconsidered, self._enforcers)

    def __bool__(self) -> bool:
        return self.allowed

    def __repr__(self) -> str:
        return brief(self, f"{self.verdict}: {self.question}")

    def __reduce__(self) -> tuple[type[Decision], tuple[bytes]]:
        from eastgate.authority.kept import KeptDecision, keep  # few decisions are pickled or copied

        return KeptDecision, (keep(self),)

    @property
    def arrival(self) -> Arrival:
        """Return the request that the decision is about, and where it arrives."""
        return self._decided.arrival

    @property
    def ways(self) -> tuple[tuple[str, bool], ...]:
        """Return all entries that the question leads to, each with its verdict."""
        ways: dict[str, bool] = {}
        for each in self._every:
            ways[each.arrival.where] = each.allowed and ways.get(each.arrival.where, True)
        return tuple(ways.items())

    @property
    def deciding_point(self) -> Point | None:
        """Return the point of enforcement that decided, or None."""
        at = self._decided.at
        if len(at.points) != len(at.programs):  # after `narrowed`: one program for the whole way
            return None
        pairs = zip(at.points, at.programs, strict=True)
        return next((point for point, program in pairs if program is self._decided.program), None)

    @property
    def outcome(self) -> Outcome:
        """Return the outcome of the layer that decided."""
        if self._outcome is None:
            self._outcome = self._decided.outcome
        return self._outcome

    @property
    def audit(self) -> tuple[Audited, ...]:
        """Return the effects of audited policies: the would-be decision if an audited policy decides, and rules that
        log.

        The policies are evaluated as if they were in force beside the others. Their verdict is not enforced.
        """
        if self._audit is None:
            self._audit = tuple(dict.fromkeys([*self._would_be()[1], *self._logged()]))
        return self._audit

    @property
    def would_be(self) -> Outcome:
        """Return the outcome if every audited policy were in force. Without audited policies it is the same."""
        return self._would_be()[0]

    def _would_be(self) -> tuple[Outcome, tuple[Audited, ...]]:
        """Return the would-be outcome: the first denial, or that of the first arrival if all would be allowed."""
        found: list[tuple[ArrivalVerdict, ArrivalVerdict, tuple[Attribute, ...]]] = []
        for now in self._every:
            then, unknown = now, tuple[Attribute, ...]()
            if any(layer.audit is not None for layer in now.at.layers):
                at, arrival = now.at.in_force(), now.arrival
                then = at.decide(at.arrival(arrival.entry, dict(arrival.request.values), self.question))
                if not then.allowed:
                    unknown = trace(at.layers, then.arrival.request, nearest=0).unknown
            found.append((now, then, unknown))
        denials = [each for each in found if not each[1].allowed]
        would = (denials or found)[0][1].outcome
        audits = (
            tuple(audited_by(now.at.layers, now.outcome, then.outcome, unknown))
            for now, then, unknown in denials or found
        )
        changes = self.allowed is not would.allowed
        return would, next((each for each in audits if each and each[0].changes is changes), ())

    def _logged(self) -> Iterator[Audited]:
        observes = any(chain.has_audit for layer in self.layers for chain in layer.chains)
        return matched(self.trace()) if observes else iter(())

    @property
    def conditions(self) -> tuple[tuple[str, Condition], ...]:
        """Return the conditions that the policies on the way would show in their status."""
        return tuple(self._enforcers.conditions(self._decided.at.points))

    @property
    def points(self) -> frozenset[Point]:
        """Return all points of enforcement that the question leads to."""
        return frozenset(point for each in self._every for point in each.at.points)

    @property
    def enforcement(self) -> tuple[PolicyEnforcement, ...]:
        """Return the enforcers of the policies on the way, for every entry of the question, if they are known."""
        found = dict.fromkeys(
            each
            for decided in self._every
            for point in decided.at.points
            for each in self._enforcers.at(point)
            if not each.ports or decided.arrival.request.values.get(PORT, each.ports[0]) in each.ports
        )
        callers = dict.fromkeys(each.arrival.request.values.get(SOURCE_WORKLOAD) for each in self._every)
        for caller in callers:
            if isinstance(caller, str):
                found |= dict.fromkeys(self._enforcers.beside_network(caller, (Direction.EGRESS,)))
        for decided in self._every:
            found |= dict.fromkeys(caller_doubts(decided.at.layers, decided.arrival.request.values))
        return tuple(found)

    @property
    def complete(self) -> bool:
        """Return whether no unread object could change the verdict."""
        return not could_change(self.unconsidered, allowed=self.allowed)

    @property
    def denied(self) -> tuple[str, ...]:
        """Return the destinations that deny the request."""
        return tuple(where for where, allowed in self.ways if not allowed)

    @property
    def verdict(self) -> Verdict:
        """Allow or deny."""
        return Verdict.ALLOW if self.allowed else Verdict.DENY

    def stated(self, unread: Handling = Handling.WARN, *, depends: bool = False) -> str:
        """State the verdict for people: ALLOW, DENY or DEPENDS, and its scope, if an unread object could change it.

        `depends`: some of the requests that the question may mean are allowed.
        """
        verdict = "DEPENDS" if depends else self.verdict.upper()
        if standing(self.unconsidered, unread, allowed=self.allowed) is Standing.WHOLE:
            return verdict
        decisive = could_change(self.unconsidered, allowed=self.allowed)
        if all(each.unread.hosts for each in decisive):
            from eastgate.reading.manifests.placeholders import names_of_variables  # most hosts are known

            names = dict.fromkeys(
                n for each in decisive for host in each.unread.hosts for n in names_of_variables(host)
            )
            return f"{verdict} (depends on {' and '.join(names)})"
        if any(each.unread.part is not None for each in decisive):
            return f"{verdict} (from what was read)"
        if not any(each.unread.kind.is_deployed for each in decisive):
            return f"{verdict} (from what is deployed)"
        beside = all(each.unread.kind.plane is EnforcementPlane.NETWORK for each in decisive)
        return f"{verdict} ({'identity policies only' if beside else 'by what was read'})"

    @property
    def policy(self) -> str | None:
        """Return the policy that decided, as Kind/namespace/name; None if a default decided."""
        origin = self.origin
        return str(origin.policy) if origin is not None and origin.policy else None

    @property
    def rule(self) -> int | None:
        """Return the index of the rule that decided in its policy, from 0."""
        origin = self.origin
        return origin.index if origin is not None and origin.policy else None

    @property
    def span(self) -> Span | None:
        """Return the span of the rule that decided; None if a default decided."""
        origin = self.origin
        return origin.span if origin is not None else None

    @property
    def origin(self) -> Origin | None:
        """Return the origin of the rule that decided; if an authorizer decided, of the authorizer's own rule."""
        rule = self.outcome.rule
        if rule is None:
            return None
        ruling = next(self._rulings(rule), None)
        return rule.origin if ruling is None or ruling.origin is None else ruling.origin

    def _rulings(self, rule: Rule) -> Iterator[Ruling]:
        """Yield the rulings of the authorizers of a rule that agree with this decision."""
        asks = (ask for layer in self.layers for ask in layer.asks if ask.rule is rule)
        answers = (self.arrival.request.answers.get(ask.authorizer) for ask in asks)
        return (each for each in answers if isinstance(each, Ruling) and each.allowed == self.allowed)

    @property
    def location(self) -> str:
        """File and line of the rule that decided, or the word for a default."""
        span = self.span
        return span.location if span is not None else "a default"

    @property
    def status(self) -> int:
        """Return the HTTP status that the client sees, 200 for an allowed request; 0 is a closed connection."""
        return self.outcome.status

    @property
    def refusal(self) -> Refusal | int | None:
        """Return the refusal of a denied client; None for an allowed request. An authorizer may choose a status."""
        return None if self.allowed else _REFUSALS.get(self.status, self.status)

    @property
    def ruling(self) -> Ruling | None:
        """Return the ruling that denied; None if no authorizer denied, or if it gives no reasons."""
        rule = None if self.allowed else self.outcome.rule
        return next(self._rulings(rule), None) if rule is not None else None

    def trace(self, nearest: int = 3) -> Trace:
        """Evaluate again, step by step, and return the result of every layer and stage."""
        if self._trace is None or nearest != _MAX_NEAREST_RULES:
            made = trace(self.layers, self.arrival.request, nearest=nearest)
            if nearest != _MAX_NEAREST_RULES:
                return made
            self._trace = made
        return self._trace

    @property
    def unknown(self) -> tuple[Attribute, ...]:
        """Return the unknown attributes that decide: with other values, the request may be allowed."""
        return () if self.allowed or self.is_fully_known else self.trace().unknown

    @property
    def is_fully_known(self) -> bool:
        """Return whether all attributes of the request that rules look at are known."""
        values = self.arrival.request.values
        return all(attribute in values for layer in self.layers for attribute in layer.looks_at)

    @property
    def looks_at_protocol(self) -> bool:
        """Return whether a layer on the way distinguishes HTTP from other bytes."""
        return any(APPLICATION in layer.looks_at for each in self._every for layer in each.at.layers)

    @property
    def leaves_protocol_open(self) -> bool:
        """Return whether the question may be HTTP or not, and a layer on the way distinguishes the two."""
        return not self.question.is_http and self.looks_at_protocol

    @property
    def reason(self) -> str:
        """Return the answer in one sentence."""
        from eastgate.authority.reasons import reason_of  # decision tables need no trace

        return reason_of(self)

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
            "at": self.arrival.where,
            "ways": [{"at": where, "verdict": "allow" if allowed else "deny"} for where, allowed in self.ways],
            "complete": self.complete,
            "unconsidered": [each.to_json() for each in self.unconsidered.matches if each.unread.part is None],
            "leftOut": [part.to_json() for part in parts_of(self.unconsidered.matches)],
            "rejectedPolicies": self.unconsidered.rejected,
            "enforcement": [each.to_json() for each in self.enforcement],
            "audit": [each.to_json() for each in self.audit],
            "conditions": [{"policy": policy, **condition.to_json()} for policy, condition in self.conditions],
            "trace": trace_to_json(self.trace()),
        }
