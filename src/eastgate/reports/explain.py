"""Explanation of a decision: the answer, a caret under the YAML that decided, and the layers in order.

A verbose explanation also has the stages of each layer, and the settings that the layer is read with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from eastgate.authority.decisions import Decision
from eastgate.authority.reasons import DEAD_ENDS
from eastgate.authority.trace_json import shown_value
from eastgate.basics.diagnostics import snippet
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster.unread import Handling, describe_unconsidered
from eastgate.engine.trace import LayerTrace, Missed, NearMiss, StageTrace
from eastgate.ir import EffectivePolicy, Origin, PolicyReading, Rule, Ruling, mentions
from eastgate.ir.attributes import MCP_TOOL, VICINITY
from eastgate.ir.symbolic.trees import truth
from eastgate.reports.columns import indent_lines, lay_out
from eastgate.reports.conditions import condition_text
from eastgate.reports.connections import actual_text

_MAX_NEAR_MISSES = 2  # also the most entries of their lists
_BOLD, _GREEN, _RED, _DIM, _RESET = "\033[1m", "\033[32m", "\033[31m", "\033[2m", "\033[0m"


def explain(
    decision: Decision,
    *,
    color: bool = False,
    unread: Handling = Handling.WARN,
    depends: bool = False,
    verbose: bool = False,
    allowed_with: tuple[Decision, str] | None = None,
) -> str:
    """Return the explanation as text. `unread` selects the notes about objects that were not considered.

    `depends`: some of the requests that the question may mean are allowed. `verbose`: with every stage and reading.
    `allowed_with`: the decision about an allowed request, and the options that make the question mean it.
    """
    return "\n".join(_Explanation(decision, color, verbose).lines(unread, depends=depends, allowed_with=allowed_with))


def explain_rule(decision: Decision) -> Iterator[str]:
    """Yield the rule that decided with a caret under its YAML; without one, the closest rules."""
    explanation = _Explanation(decision, color=False)
    if decision.outcome.rule is not None:
        yield from explanation.deciding_rule(decision.outcome.rule)
        return
    for layer in explanation.trace.layers:
        if layer.nearest:
            yield from explanation.nearest(layer)


class _Explanation:
    def __init__(self, decision: Decision, color: bool, verbose: bool = False) -> None:
        self.decision = decision
        self.color = color
        self.verbose = verbose
        self.trace = decision.trace()

    def paint(self, text: str, tone: str) -> str:
        return f"{tone}{printable(text)}{_RESET}" if self.color else printable(text)

    def lines(
        self, unread: Handling, *, depends: bool, allowed_with: tuple[Decision, str] | None = None
    ) -> Iterator[str]:
        decision = self.decision
        tone = _GREEN if decision.allowed else _RED
        verdict = self.paint(decision.stated(unread, depends=depends), _BOLD + tone)
        yield f"{verdict}  {printable(str(decision.question))}"
        yield printable(f"  {decision.reason}")
        yield from (printable(f"  {each.line}") for each in decision.audit)
        yield ""
        if len(decision.ways) > 1:
            yield "it may arrive at"
            for where, allowed in decision.ways:
                yield f"  {printable(where)}: {self.verdict(allowed)}"
            yield ""
        if decision.outcome.rule is not None:
            about = (
                " connections without HTTP"
                if depends and decision.leaves_protocol_open and not decision.unknown
                else ""
            )
            yield from self.deciding_rule(decision.outcome.rule, about)
            yield ""
        if allowed_with is not None and allowed_with[0].outcome.rule is not None:
            yield from self.rule_that_would_allow(*allowed_with)
            yield ""
        for layer in self.trace.layers if allowed_with is None else ():
            if layer.nearest:
                yield from self.nearest(layer)
                yield ""
        yield from self.layers()
        if notes := list(describe_unconsidered(decision.unconsidered, unread)):
            yield ""
            yield from map(printable, notes)

    def assumed(self, layer: LayerTrace) -> Iterator[str]:
        for attribute, value in layer.assumed:
            if self.verbose or attribute != VICINITY:  # the reason names the vicinity, and its values are internal
                yield printable(f"    unknown {attribute}: for example {_value(value)}")

    def layers(self) -> Iterator[str]:
        yield printable(f"at {self.decision.arrival.where}:")
        if not self.trace.layers:
            yield "  no policy targets it, so it is open"
        for layer in self.trace.layers:
            by = "" if self.verbose else _decider(layer)
            yield f"  {printable(str(layer.layer))}: {self.verdict(layer.outcome.allowed)}{printable(by)}"
            if layer.scope is not None and self.verbose:
                yield printable(f"    {layer.scope}")
            if layer.effective is not None:
                yield from _rules_of(layer.effective)
            yield from self.assumed(layer)
            for reading in layer.readings:
                if self.verbose:
                    yield printable(f"    reading {reading}")
                elif isinstance(reading, PolicyReading):
                    yield printable(f"    {reading}")
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
            if not stage.observed and self.verbose:
                yield f"    {stage.stage:<9} no audited rule matches {_of(stage.rules)}"
            return
        if self.verbose:
            yield printable(f"    {stage.stage:<9} {_effect(stage)}")
        for authorizer, answer in stage.asked:
            yield printable(f"      {authorizer}: {answer}")
            if isinstance(answer, Ruling) and answer.is_explained:
                yield from self.ruling(answer)

    def ruling(self, ruling: Ruling) -> Iterator[str]:
        """Show the steps of an authorizer, and the JSON that it read."""
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

    def deciding_rule(self, rule: Rule, about: str = "") -> Iterator[str]:
        origin = self.decision.origin or rule.origin
        span = origin.span
        does = "allows" if self.decision.allowed else "denies"
        yield printable(f"{origin} {does}{about}:")
        if span is None:
            return
        yield f"  --> {span}"
        ruling = self.ruling_of(rule)
        if ruling is not None:
            yield from self.decisive_step(ruling)
            return
        parts = self.reasons(rule.origin)
        for part, note in parts.items():
            yield from snippet(part, note=note, color=self.color)
        if not parts and rule.origin.policy is not None:
            yield from snippet(span, note="anything", color=self.color)

    def rule_that_would_allow(self, allowed: Decision, options: str) -> Iterator[str]:
        """Show the rule that allows the question with more options. The caret is under its first part about them."""
        origin = allowed.origin
        yield printable(f"{origin} would allow it with {options}:")
        if origin is None or origin.span is None:
            return
        known = self.decision.arrival.request.values
        added = [(part, str(attribute)) for attribute, part in origin.parts if attribute not in known]
        span, note = min(added, key=lambda each: (each[0].line, each[0].column), default=(origin.span, ""))
        yield f"  --> {span}"
        yield from snippet(span, note=note, color=self.color)

    def ruling_of(self, rule: Rule) -> Ruling | None:
        """Return the ruling of the authorizer that a rule asks."""
        for layer in self.decision.layers:
            for ask in layer.asks:
                answer = self.decision.arrival.request.answers.get(ask.authorizer) if ask.rule is rule else None
                if isinstance(answer, Ruling) and answer.is_explained:
                    return answer
        return None

    def decisive_step(self, ruling: Ruling) -> Iterator[str]:
        """Show the text of the last step, or of its pattern that did not match."""
        steps = [step for step in ruling.steps if step.span is not None]
        if not steps:
            return
        step = steps[-1]
        failed = next((seen for seen in step.seen if seen.span is not None and seen.verdict != "accepted"), None)
        span, note = (failed.span, f"saw {failed.saw}") if failed is not None else (step.span, str(step.verdict))
        if span is not None:
            yield from snippet(span, note=note, color=self.color)

    def nearest(self, layer: LayerTrace) -> Iterator[str]:
        misses = layer.nearest
        if not self.verbose:  # rules that miss as little as the first
            misses = tuple(miss for miss in misses if len(miss.unmet) == len(misses[0].unmet))[:_MAX_NEAR_MISSES]
        yield "closest rules:" if len(misses) > 1 else "closest rule:"
        for miss in misses:
            yield from self.near_miss(miss)

    def near_miss(self, miss: NearMiss) -> Iterator[str]:
        if miss.rule.origin.pieces:
            yield from self.missed_pieces(miss)
            return
        missed = "; ".join(map(_missed_text, miss.missed))
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

    def missed_pieces(self, miss: NearMiss) -> Iterator[str]:
        """Show the values of a connection, and the entries of a rule that the connection must have one of."""
        unmet = frozenset(attribute for part in miss.unmet for attribute in mentions(part))
        actual = actual_text(self.decision.arrival.request.values, unmet)
        yield printable(f"  {miss.rule.origin} missed it: {actual}")
        pieces = [(when, span) for when, span in miss.rule.origin.pieces if not unmet.isdisjoint(mentions(when))]
        for when, span in pieces if self.verbose else pieces[:_MAX_NEAR_MISSES]:
            yield f"  --> {span}"
            yield from snippet(span, note=f"wants {condition_text(when)}", color=self.color)

    def reasons(self, origin: Origin) -> dict[Span, str]:
        """Return the texts by which a rule matches, each with its requirement."""
        request = self.decision.arrival.request
        held = {span: condition_text(when) for when, span in origin.pieces if truth(when, request) is True}
        if held:
            return held
        asked: dict[Span, dict[str, None]] = {}  # one text may constrain several forms of an attribute
        for attribute, span in origin.parts:
            asked.setdefault(span, {})[str(attribute)] = None
        return {span: ", ".join(names) for span, names in asked.items()}

    def verdict(self, allowed: bool) -> str:
        return self.paint("allowed", _GREEN) if allowed else self.paint("denied", _RED)


def _rules_of(effective: EffectivePolicy) -> list[str]:
    # imported here because few decisions have an effective policy
    from eastgate.reports.effective.policies import effective_policy_lines

    return lay_out(indent_lines(effective_policy_lines(effective, headers=False), "      "))


def _decider(layer: LayerTrace) -> str:
    """Name the rule that decided in a layer, with its line; without one, name the missing part."""
    decided = next((stage for stage in reversed(layer.stages) if stage.rule is not None), None)
    rule = layer.outcome.rule if layer.outcome.rule is not None else decided.rule if decided is not None else None
    if rule is not None:
        return f" by {rule.origin}" + (f"  ({rule.origin.span.location})" if rule.origin.span is not None else "")
    scope = f" ({layer.scope})" if layer.scope is not None else ""
    is_default = bool(layer.stages) and layer.stages[-1].effect == "denied" and not layer.outcome.allowed
    why = f": {DEAD_ENDS.get(layer.outcome.stage, 'no rule allows it')}" if is_default else ""
    return f"{why}{scope}"


def _effect(stage: StageTrace) -> str:
    if stage.rule is not None:
        return f"{stage.effect} by {stage.rule.origin}"
    return f"{'denied: no rule matches' if stage.effect == 'denied' else 'no match'} {_of(stage.rules)}"


def _of(rules: int) -> str:
    return f"({rules} rule{'' if rules == 1 else 's'})"


def _missed_text(missed: Missed) -> str:
    if missed.attribute != MCP_TOOL:
        return f"{missed.attribute} is {_value(missed.actual)}"
    meant = f" (did you mean {missed.meant}?)" if missed.meant is not None else ""
    return f"the request calls the tool {_value(missed.actual)}, and the rule allows {missed.wanted}{meant}"


def _value(value: object) -> str:
    text = shown_value(value)
    return " and ".join(text) if isinstance(text, list) else str(text)
