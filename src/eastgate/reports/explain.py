"""Explanation of a decision: the layers and stages in order, and a caret under the YAML that decided."""

from __future__ import annotations

import json
from collections.abc import Iterator

from eastgate.api.decisions import Decision
from eastgate.api.trace_json import shown_value
from eastgate.diagnostics import snippet
from eastgate.diagnostics.printable import printable
from eastgate.diagnostics.spans import Span
from eastgate.engine.trace import LayerTrace, NearMiss, StageTrace
from eastgate.ir import EffectivePolicy, Rule, Ruling
from eastgate.reports.columns import indent_lines, lay_out
from eastgate.unread import Handling, describe_unconsidered

__all__ = ["explain", "explain_rule"]

_BOLD, _GREEN, _RED, _DIM, _RESET = "\033[1m", "\033[32m", "\033[31m", "\033[2m", "\033[0m"


def explain(decision: Decision, *, color: bool = False, unread: Handling = Handling.WARN, depends: bool = False) -> str:
    """Return the explanation as text. `unread` decides what it says about objects that were not considered.

    `depends`: some of the requests that the question may mean are allowed.
    """
    return "\n".join(_Explanation(decision, color).lines(unread, depends=depends))


def explain_rule(decision: Decision, *, color: bool = False) -> Iterator[str]:
    """Yield the rule that decided with a caret under its YAML; where none did, the closest ones."""
    explanation = _Explanation(decision, color)
    if decision.outcome.rule is not None:
        yield from explanation.deciding_rule(decision.outcome.rule)
        return
    for layer in explanation.trace.layers:
        if layer.nearest:
            yield from explanation.nearest(layer)


class _Explanation:
    def __init__(self, decision: Decision, color: bool) -> None:
        self.decision = decision
        self.color = color
        self.trace = decision.trace()

    def paint(self, text: str, tone: str) -> str:
        return f"{tone}{printable(text)}{_RESET}" if self.color else printable(text)

    def lines(self, unread: Handling, *, depends: bool) -> Iterator[str]:
        decision = self.decision
        tone = _GREEN if decision.allowed else _RED
        verdict = self.paint(decision.stated(unread, depends=depends), _BOLD + tone)
        yield f"{verdict}  {printable(str(decision.question))}"
        yield printable(f"  {decision.reason}")
        yield ""
        if len(decision.ways) > 1:
            yield "it may arrive at"
            for where, allowed in decision.ways:
                yield f"  {printable(where)}: {self.verdict(allowed)}"
            yield ""
        yield from self.layers()
        if decision.outcome.rule is not None:
            yield ""
            yield from self.deciding_rule(decision.outcome.rule)
        for layer in self.trace.layers:
            if layer.nearest:
                yield ""
                yield from self.nearest(layer)
        if notes := list(describe_unconsidered(decision.unconsidered, unread)):
            yield ""
            yield from map(printable, notes)

    def layers(self) -> Iterator[str]:
        yield printable(f"at {self.decision.arrival.where}:")
        if not self.trace.layers:
            yield "  no policy targets it, so it is open"
        for layer in self.trace.layers:
            yield f"  {printable(str(layer.layer))}: {self.verdict(layer.outcome.allowed)}"
            if layer.scope is not None:
                yield printable(f"    {layer.scope}")
            if layer.effective is not None:
                yield from _rules_of(layer.effective)
            for attribute, value in layer.assumed:
                yield printable(f"    unknown {attribute}: for example {_value(value)}")
            for reading in layer.readings:
                yield printable(f"    reading {reading}")
            for stage in layer.stages:
                yield from self.stage(stage)
            if layer.outcome.is_unasked:
                yield f"    refused before any rule ({layer.outcome.status})"
        for name in self.trace.not_reached:
            yield self.paint(f"  {name}: not reached", _DIM)

    def stage(self, stage: StageTrace) -> Iterator[str]:
        if stage.effect == "observed":
            for rule, would in stage.observed:
                yield printable(f"    {stage.stage:<9} {rule.origin} would {would}")
            if not stage.observed:
                yield f"    {stage.stage:<9} no match {_of(stage.rules)}"
            return
        if stage.rule is not None:
            yield printable(f"    {stage.stage:<9} {stage.effect} by {stage.rule.origin}")
        elif stage.effect == "denied":
            yield f"    {stage.stage:<9} denied: no rule matches {_of(stage.rules)}"
        else:
            yield f"    {stage.stage:<9} no match {_of(stage.rules)}"
        for authorizer, answer in stage.asked:
            yield printable(f"      {authorizer}: {answer}")
            if isinstance(answer, Ruling) and answer.is_explained:
                yield from self.ruling(answer)

    def ruling(self, ruling: Ruling) -> Iterator[str]:
        """Show what an authorizer evaluated, step by step, and the JSON that it saw."""
        for step in ruling.steps:
            where = f"  ({step.span.location})" if step.span else ""
            yield printable(f"        {step.kind} {step.name}: {step.verdict}. {step.reason}{where}")
            for seen in step.seen:
                saw = "nothing" if seen.saw is None else seen.saw
                yield printable(f"          {seen.expression}: {seen.verdict}, it saw {saw}")
        if ruling.document:
            yield "        the JSON that it saw:"
        for part, content in ruling.document.items():
            if content and part != "context":  # a copy of `request` under its older names
                text = json.dumps(content, ensure_ascii=False, default=str)
                yield self.paint(f"          {part}: {text}", _DIM)

    def deciding_rule(self, rule: Rule) -> Iterator[str]:
        origin = self.decision.origin or rule.origin
        span = origin.span
        does = "allows" if self.decision.allowed else "denies"
        yield printable(f"{origin} {does}:")
        if span is None:
            return
        yield f"  --> {span}"
        ruling = self.ruling_of(rule)
        if ruling is not None:
            yield from self.decisive_step(ruling)
            return
        parts = dict.fromkeys((str(attribute), part) for attribute, part in rule.origin.parts)
        for note, part in parts:  # one text may constrain several forms of an attribute
            yield from snippet(part, note=note, color=self.color)
        if not parts and rule.origin.policy is not None:
            yield from snippet(span, note="anything", color=self.color)

    def ruling_of(self, rule: Rule) -> Ruling | None:
        """Return the ruling of the authorizer that a rule asks."""
        for layer in self.decision.layers:
            for ask in layer.asks:
                answer = self.decision.arrival.request.answers.get(ask.authorizer) if ask.rule is rule else None
                if isinstance(answer, Ruling) and answer.is_explained:
                    return answer
        return None

    def decisive_step(self, ruling: Ruling) -> Iterator[str]:
        """Show the text of the last step that was taken, or of the pattern in it that did not match."""
        steps = [step for step in ruling.steps if step.span is not None]
        if not steps:
            return
        step = steps[-1]
        failed = next((seen for seen in step.seen if seen.span is not None and seen.verdict != "accepted"), None)
        span, note = (failed.span, f"saw {failed.saw}") if failed is not None else (step.span, str(step.verdict))
        if span is not None:
            yield from snippet(span, note=note, color=self.color)

    def nearest(self, layer: LayerTrace) -> Iterator[str]:
        yield "closest rules:" if len(layer.nearest) > 1 else "closest rule:"
        for miss in layer.nearest:
            yield from self.near_miss(miss)

    def near_miss(self, miss: NearMiss) -> Iterator[str]:
        missed = "; ".join(f"{atom.attribute} is {_value(atom.actual)}" for atom in miss.missed)
        yield printable(f"  {miss.rule.origin} missed it: {missed}")
        shown: set[Span] = set()
        for atom in miss.missed:
            span = miss.rule.origin.part(atom.attribute)
            if span is None or span in shown:
                continue
            shown.add(span)
            yield f"  --> {span}"
            if miss.rule.origin.policy is not None:
                yield from snippet(span, note=f"wants {atom.wanted}", color=self.color)

    def verdict(self, allowed: bool) -> str:
        return self.paint("allowed", _GREEN) if allowed else self.paint("denied", _RED)


def _rules_of(effective: EffectivePolicy) -> list[str]:
    from eastgate.reports.effective.policies import effective_policy_lines  # few decisions have an effective policy

    return lay_out(indent_lines(effective_policy_lines(effective, headers=False), "      "))


def _of(rules: int) -> str:
    return f"({rules} rule{'' if rules == 1 else 's'})"


def _value(value: object) -> str:
    text = shown_value(value)
    return " and ".join(text) if isinstance(text, list) else str(text)
