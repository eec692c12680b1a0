"""Traces of decisions, and origins of rules, as plain data: the `-o json` of commands."""

from __future__ import annotations

from eastgate.engine.trace import LayerTrace, StageTrace, Trace
from eastgate.ir import Answer, EffectivePolicy, Origin, Ruling
from eastgate.ir.symbolic.cells import OTHER


def trace_to_json(trace: Trace) -> list[dict[str, object]]:
    """Return a trace as plain data: one entry for each layer."""
    reached = [_layer_to_json(layer) for layer in trace.layers]
    return reached + [{"layer": layer, "verdict": "not reached", "stages": []} for layer in trace.not_reached]


def _layer_to_json(layer: LayerTrace) -> dict[str, object]:
    effective = {} if layer.effective is None else {"effective": effective_to_json(layer.effective)}
    return {
        "layer": layer.layer,
        "verdict": "allow" if layer.outcome.allowed else "deny",
        "scope": None if layer.scope is None else str(layer.scope),
        "readings": [str(reading) for reading in layer.readings],
        "assumed": {str(attribute): shown_value(value) for attribute, value in layer.assumed},
        "stages": [_stage_to_json(stage) for stage in layer.stages],
        "nearest": [
            {
                **origin_to_json(miss.rule.origin),
                "missed": [
                    {"attribute": str(part.attribute), "wanted": part.wanted, "actual": shown_value(part.actual)}
                    for part in miss.missed
                ],
            }
            for miss in layer.nearest
        ],
        **effective,
    }


def effective_to_json(effective: EffectivePolicy) -> dict[str, object]:
    """Return the rules of an effective policy, and the shadowed rules, each with its file and line."""
    return {
        "rules": [{"key": rule.key, **origin_to_json(rule.origin)} for rule in effective.rules],
        "shadowed": [
            {
                "key": rule.key,
                **origin_to_json(rule.origin),
                "why": rule.why.value,
                "by": [str(policy) for policy in rule.by],
            }
            for rule in effective.shadowed
        ],
    }


_NO_RULE = {"policy": None, "rule": None, "label": None, "file": None, "line": None}


def _stage_to_json(stage: StageTrace) -> dict[str, object]:
    return {
        "stage": stage.stage,
        "said": stage.effect,
        "rules": stage.rules,
        **(origin_to_json(stage.rule.origin) if stage.rule else _NO_RULE),
        "observed": [{**origin_to_json(rule.origin), "would": would} for rule, would in stage.observed],
        "asked": [_answer_to_json(authorizer, answer) for authorizer, answer in stage.asked],
    }


def _answer_to_json(authorizer: str, answer: Answer) -> dict[str, object]:
    entry: dict[str, object] = {"authorizer": authorizer, "answer": str(answer)}
    if isinstance(answer, Ruling) and answer.is_explained:
        entry["status"] = answer.status
        entry["steps"] = [
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
            for step in answer.steps
        ]
        entry["document"] = answer.document
    return entry


def origin_to_json(origin: Origin) -> dict[str, object]:
    """Return the policy, the index and the place of a rule."""
    span = origin.span
    return {
        "policy": str(origin.policy) if origin.policy else None,
        "rule": origin.index if origin.policy else None,
        "label": origin.label or None,
        "file": span.file if span else None,
        "line": span.line if span else None,
    }


def shown_value(value: object) -> object:
    """Return a value of an attribute as people write it."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str) and OTHER in value:  # no question can name it
        return "any other" if value == OTHER else value.replace(OTHER, "other")
    return value if isinstance(value, str | int) else "absent" if value is None else "unknown"
