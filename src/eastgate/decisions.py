"""Decisions: the answer to a question, who gave it, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from eastgate.dialects.base import Condition
from eastgate.engine.completions import OTHER
from eastgate.engine.trace import LayerTrace, StageTrace, Trace, trace
from eastgate.places import Span
from eastgate.policy import REFUSED_HOST, REFUSED_SPELLING, Answer, Layer, Origin, Outcome, Ruling, Unroutable
from eastgate.questions import Arrival, Question
from eastgate.unconsidered import Handling, Plane, Standing, Unconsidered, could_change, standing

__all__ = ["Decision"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer. It is about `arrival`: the first that is denied, or the first of all where all are allowed.

    `ways` are all the places that the question leads to, and whether each allows. `unconsidered` is what could not be
    considered. `tell` gives the `conditions`.
    """

    question: Question
    arrival: Arrival
    outcome: Outcome
    layers: tuple[Layer, ...]
    ways: tuple[tuple[str, bool], ...] = ()
    unconsidered: Unconsidered = field(default_factory=Unconsidered)
    tell: Callable[[], tuple[tuple[str, Condition], ...]] = field(default=tuple, compare=False, repr=False)

    @property
    def conditions(self) -> tuple[tuple[str, Condition], ...]:
        """What the policies on the way would show in their status; computed when somebody asks."""
        return self.tell()

    @property
    def complete(self) -> bool:
        """Whether nothing that was not considered could change the verdict."""
        return not could_change(self.unconsidered, allowed=self.allowed)

    @property
    def allowed(self) -> bool:
        """Whether the answer is yes."""
        return self.outcome.allowed

    @property
    def denied(self) -> tuple[str, ...]:
        """The places that refuse."""
        return tuple(where for where, allowed in self.ways if not allowed)

    @property
    def verdict(self) -> str:
        """`allow` or `deny`."""
        return "allow" if self.outcome.allowed else "deny"

    def stated(self, unread: Handling = Handling.WARN) -> str:
        """The verdict for people: ALLOW or DENY, and of what, where something that was not read could change it."""
        verdict = self.verdict.upper()
        if standing(self.unconsidered, unread, allowed=self.allowed) is Standing.WHOLE:
            return verdict
        decisive = could_change(self.unconsidered, allowed=self.allowed)
        beside = all(one.unread.kind.plane is Plane.NETWORK for one in decisive)
        return f"{verdict} ({'identity policies only' if beside else 'by what was read'})"

    @property
    def policy(self) -> str | None:
        """The policy that decided, as Kind/namespace/name; None where a default did."""
        rule = self.outcome.rule
        return str(rule.origin.policy) if rule and rule.origin.policy else None

    @property
    def rule(self) -> int | None:
        """The place of the rule that decided in its policy, from 0."""
        rule = self.outcome.rule
        return rule.origin.index if rule and rule.origin.policy else None

    @property
    def span(self) -> Span | None:
        """Where the rule that decided is written."""
        rule = self.outcome.rule
        return rule.origin.span if rule else None

    @property
    def status(self) -> int:
        """What the client sees: an HTTP status, or 0 for a closed connection."""
        return self.outcome.status

    def trace(self, nearest: int = 3) -> Trace:
        """What every layer and stage said."""
        return trace(self.layers, self.arrival.request, nearest=nearest)

    @property
    def reason(self) -> str:
        """The answer in one sentence."""
        return _reason(self)

    def to_json(self) -> dict[str, object]:
        """The answer as plain data: the `-o json` of `check`."""
        span = self.span
        return {
            "verdict": self.verdict,
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
            "unconsidered": [met.to_json() for met in self.unconsidered.met],
            "rejectedPolicies": self.unconsidered.rejected,
            "conditions": [{"policy": policy, **condition.to_json()} for policy, condition in self.conditions],
            "trace": trace_to_json(self.trace()),
        }


DEAD_ENDS: dict[str | None, str] = {
    Unroutable.NO_ROUTE: "no route of the gateway matches",
    Unroutable.NO_INBOUND_ROUTE: "no route of the Server matches",
    Unroutable.NO_BACKEND: "the route leads to no backend",
    Unroutable.REFERENCE_NOT_GRANTED: (
        "the route refers to a backend of another namespace, and no ReferenceGrant there lets it"
    ),
    Unroutable.BACKEND_NOT_DECLARED: "the route refers to a backend that no manifest declares",
}

UNASKED: dict[str | None, str] = {
    None: "its path has an encoded slash or backslash, and a policy looks at paths",
    REFUSED_HOST: "what it names as its host is no host with a port up to 65535, and the port is read as HTTP",
    REFUSED_SPELLING: "its path has characters as %XX that need not be, and a policy compares it with a pattern",
}


def _reason(decision: Decision) -> str:
    outcome = decision.outcome
    told = decision.trace(nearest=0)
    last = told.layers[-1] if told.layers else None
    where = decision.arrival.where
    if outcome.rule is not None:
        does = "allows" if outcome.allowed else "denies"
        text = f"{outcome.rule.origin} {does} it" + _because(last)
    elif outcome.allowed:
        text = f"nothing denies it at {where}" if decision.layers else f"no policy targets {where}"
    elif last is not None and last.exhausted:
        text = "too much of the question is unknown to be sure that it is allowed"
    elif outcome.stage in DEAD_ENDS:
        text = DEAD_ENDS[outcome.stage]
    elif outcome.is_unasked:
        text = UNASKED[outcome.stage]
    else:
        level = f" ({outcome.layer})" if len(decision.layers) > 1 else ""
        text = f"no rule allows it at {where}{level}"
    if told.unknown and not outcome.allowed:
        text += f"; unknown: {', '.join(map(str, told.unknown))}"
    if decision.denied and len(decision.ways) > 1:
        text += f" (denied at {len(decision.denied)} of {len(decision.ways)}: {', '.join(decision.denied)})"
    return text


def _because(layer: LayerTrace | None) -> str:
    """What the auth scheme that denied says about it."""
    asked = layer.stages[-1].asked if layer is not None and layer.stages else ()
    refusals = (answer.text for _, answer in asked if isinstance(answer, Ruling) and not answer.allowed)
    return next((f": {text}" for text in refusals), "")


def trace_to_json(told: Trace) -> list[dict[str, object]]:
    """A trace as plain data: one entry for each layer."""
    reached = [_layer_to_json(layer) for layer in told.layers]
    return reached + [{"layer": layer, "verdict": "not reached", "stages": []} for layer in told.not_reached]


def _layer_to_json(layer: LayerTrace) -> dict[str, object]:
    return {
        "layer": layer.layer,
        "verdict": "allow" if layer.outcome.allowed else "deny",
        "scope": None if layer.scope is None else str(layer.scope),
        "readings": [str(reading) for reading in layer.readings],
        "assumed": {str(attribute): shown(value) for attribute, value in layer.assumed},
        "stages": [_stage_to_json(stage) for stage in layer.stages],
        "nearest": [
            {
                **origin_to_json(miss.rule.origin),
                "missed": [
                    {"attribute": str(one.attribute), "wanted": one.wanted, "actual": shown(one.actual)}
                    for one in miss.missed
                ],
            }
            for miss in layer.nearest
        ],
    }


_NO_RULE = {"policy": None, "rule": None, "label": None, "file": None, "line": None}


def _stage_to_json(stage: StageTrace) -> dict[str, object]:
    return {
        "stage": stage.stage,
        "said": stage.said,
        "rules": stage.rules,
        **(origin_to_json(stage.rule.origin) if stage.rule else _NO_RULE),
        "observed": [{**origin_to_json(rule.origin), "would": would} for rule, would in stage.observed],
        "asked": [_answer_to_json(authorizer, answer) for authorizer, answer in stage.asked],
    }


def _answer_to_json(authorizer: str, answer: Answer) -> dict[str, object]:
    told: dict[str, object] = {"authorizer": authorizer, "answer": str(answer)}
    if not isinstance(answer, Ruling):
        return told
    from eastgate.authconfig.judgement import Judgement  # few answers are of this kind

    judged = answer.detail
    if isinstance(judged, Judgement):
        told["status"] = judged.status
        told["steps"] = [
            {
                "kind": str(step.kind),
                "name": step.name,
                "verdict": str(step.verdict),
                "reason": step.reason,
                "file": step.span.file if step.span else None,
                "line": step.span.line if step.span else None,
                "seen": [
                    {"expression": seen.expression, "saw": seen.saw, "verdict": str(seen.verdict)} for seen in step.seen
                ],
            }
            for step in judged.steps
        ]
        told["document"] = judged.document
    return told


def origin_to_json(origin: Origin) -> dict[str, object]:
    """Which rule, and where it is written."""
    span = origin.span
    return {
        "policy": str(origin.policy) if origin.policy else None,
        "rule": origin.index if origin.policy else None,
        "label": origin.label or None,
        "file": span.file if span else None,
        "line": span.line if span else None,
    }


def shown(value: object) -> object:
    """A value as a person wants to see it."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str) and OTHER in value:  # which nobody can ask about
        return "any other" if value == OTHER else value.replace(OTHER, "other")
    return value if isinstance(value, str | int) else "absent" if value is None else "unknown"
