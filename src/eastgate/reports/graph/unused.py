"""Unused rules and policies: without them, no answer changes.

Each rule is left out of the layers, and the new answers are compared with the old ones. If only callers decide, the
comparison is exact. If conditions decide, Eastgate searches for a request whose verdict differs. If there are too many
conditions for that, the rule is reported as not proven, and never as unused.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from eastgate.authority.authority import Authority
from eastgate.authority.trace_json import origin_to_json
from eastgate.basics.records import dataclass
from eastgate.cluster.points import Point
from eastgate.ir import Chain, Derived, Layer, Observe, Origin, PolicyRef, Rule, RuleKind, rewrite_stage
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.destinations import Destination, Entrance, Passage
from eastgate.reach.endings import EnforcementPoint
from eastgate.reach.reachability import Answer, Reachability
from eastgate.reach.searching import IMPOSSIBLE
from eastgate.reports.columns import Line, columns, lay_out
from eastgate.reports.graph.conditions import allowed_when
from eastgate.reports.graph.text import limit, rule_lines

# Layers without some of their rules


RuleKey: TypeAlias = tuple[PolicyRef | None, int, Derived | None]
"""The key of a rule, the same in all layers."""


def key_of(origin: Origin) -> RuleKey:
    """Return the key of the rule with this origin."""
    return origin.policy, origin.index, origin.derived


def leave_out(layer: Layer, keys: frozenset[RuleKey]) -> Layer:
    """Return a layer without some rules; the same layer if it has none of them."""
    if not any(key_of(rule.origin) in keys for chain in layer.chains for rule in chain.rules(observed=False)):
        return layer
    cases = tuple(replace(case, chain=_chain(case.chain, keys)) for case in layer.cases)
    return replace(layer, cases=cases, otherwise=_chain(layer.otherwise, keys))


def _chain(chain: Chain, keys: frozenset[RuleKey]) -> Chain:
    def leave(rule: Rule) -> Rule | None:
        return None if key_of(rule.origin) in keys else rule

    stages = (stage if isinstance(stage, Observe) else rewrite_stage(stage, leave) for stage in chain.stages)
    return replace(chain, stages=tuple(stages))


_MAX_REPLACEMENTS = 4  # rules that are named as replacements of one rule
_AUTHORED = frozenset({RuleKind.LISTED, RuleKind.SCHEME})


class Proof(enum.StrEnum):
    """The proof that a rule is needed or unused."""

    NEEDED = "needed"
    UNUSED = "unused"
    UNPROVEN = "not proven"


@dataclass(frozen=True, slots=True)
class UnusedRule:
    """A rule that is unused, or that is not proven to be needed, and the rules that decide without it for its callers.

    None in `instead` means a default.
    """

    origin: Origin
    proof: Proof
    instead: tuple[Origin | None, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        instead = [None if origin is None else origin_to_json(origin) for origin in self.instead]
        return {**origin_to_json(self.origin), "proof": str(self.proof), "instead": instead}


@dataclass(frozen=True, slots=True)
class Unused:
    """All findings, and the policies that are unused as a whole."""

    rules: tuple[UnusedRule, ...]
    policies: tuple[PolicyRef, ...]
    points: tuple[Point, ...]

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        rules = [finding.to_json() for finding in self.rules]
        return {"rules": rules, "policies": [str(policy) for policy in self.policies]}


def find_unused(authority: Authority) -> Unused:
    """Find the rules without which no answer changes, and those for which this is not proven."""
    search = _RuleTrial(Reachability(authority))
    findings = []
    by_policy: dict[PolicyRef, list[Proof]] = {}
    for key, rule in search.rules.items():
        origin = rule.origin
        proof, instead = search.try_without(frozenset({key}))
        if origin.policy is not None:
            by_policy.setdefault(origin.policy, []).append(proof)
        if proof is not Proof.NEEDED:
            findings.append(UnusedRule(origin, proof, instead))
    idle = [
        policy
        for policy, proofs in by_policy.items()
        if set(proofs) == {Proof.UNUSED}
        and search.try_without(frozenset(key for key in search.rules if key[0] == policy))[0] is Proof.UNUSED
    ]
    findings.sort(key=lambda finding: _order(finding.origin))
    return Unused(tuple(findings), tuple(sorted(idle)), search.points)


class _RuleTrial:
    def __init__(self, reach: Reachability) -> None:
        self._reach = reach
        self.rules: dict[RuleKey, Rule] = {}
        self._using: dict[RuleKey, dict[Destination, None]] = {}
        for destination in reach.destinations:
            for rule in _rules(destination):
                key = key_of(rule.origin)
                self.rules.setdefault(key, rule)
                self._using.setdefault(key, {})[destination] = None

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(point for destination in self._reach.destinations for point in destination.points)

    def try_without(self, keys: frozenset[RuleKey]) -> tuple[Proof, tuple[Origin | None, ...]]:
        """Return whether answers change without some rules, and the rules that decide in their place."""
        instead: dict[Origin | None, None] = {}
        proof = Proof.UNUSED
        layers: dict[int, Layer] = {}
        for destination in {using: None for key in keys for using in self._using[key]}:
            for entrance in (each for whole in destination.entrances for each in _by_end(whole)):
                for before, after in self._both(entrance, keys, layers):
                    same = _decide_alike(before, after)
                    if same is False:
                        return Proof.NEEDED, ()
                    proof = Proof.UNPROVEN if same is None else proof
                    if after.callers & self._concerned(keys, entrance):
                        instead.update(dict.fromkeys(branch.end.origin for branch in after.branches))
        return proof, tuple(instead)

    def _concerned(self, keys: frozenset[RuleKey], entrance: Entrance) -> CallerSet:
        """Return the callers that some of the rules may match."""
        concerned = 0
        for key in keys:
            concerned |= self._reach.callers.holding(self.rules[key].when, entrance.facts).possible
        return concerned

    def _both(
        self, entrance: Entrance, keys: frozenset[RuleKey], layers: dict[int, Layer]
    ) -> Iterator[tuple[Answer, Answer]]:
        """Yield the answers with and without the rules, for sets of callers that share both."""
        after = self._reach.forgetful().answers(_change(entrance, keys, layers))
        for before in self._reach.answers(entrance):
            yield from ((before, answer) for answer in after if before.callers & answer.callers)


def _by_end(entrance: Entrance) -> Iterator[Entrance]:
    """Yield an entrance for each destination of weighted routing, because a rule may matter for only one of them."""
    most = max((len(passage.points) for passage in entrance.passages), default=0)
    if most < 2:
        yield entrance
        return
    for number in range(most):
        passages = (
            replace(passage, points=(passage.points[min(number, len(passage.points) - 1)],))
            if passage.points
            else passage
            for passage in entrance.passages
        )
        yield replace(entrance, passages=tuple(passages))


def _rules(destination: Destination) -> Iterator[Rule]:
    layers = {id(layer): layer for entrance in destination.entrances for layer in entrance.layers}
    for layer in layers.values():
        for chain in layer.chains:
            for rule in chain.rules(observed=False):
                if rule.origin.policy is not None and rule.origin.kind in _AUTHORED:
                    yield rule


def _change(entrance: Entrance, keys: frozenset[RuleKey], layers: dict[int, Layer]) -> Entrance:
    def changed(layer: Layer) -> Layer:
        if id(layer) not in layers:
            layers[id(layer)] = leave_out(layer, keys)
        return layers[id(layer)]

    passages = tuple(
        Passage(
            passage.when,
            tuple(EnforcementPoint(p.names, tuple(map(changed, p.layers)), p.facts) for p in passage.points),
            passage.leads_to,
        )
        for passage in entrance.passages
    )
    facts, hides = entrance.facts, entrance.hides_http
    return Entrance(entrance.ports, entrance.others, facts, passages, entrance.service, entrance.tls, hides)


def _decide_alike(before: Answer, after: Answer) -> bool | None:
    """Return whether two answers have the same verdicts; None if that is unknown."""
    if before.too_many or after.too_many:
        return None
    if before.allowed is not None and after.allowed is not None:
        return before.allowed is after.allowed
    first, second = allowed_when(before.branches), allowed_when(after.branches)
    if first == second:
        return True
    try:
        return witness(first, [second, *IMPOSSIBLE]) is None and witness(second, [first, *IMPOSSIBLE]) is None
    except GaveUp:
        return None


def _order(origin: Origin) -> tuple[str, int, str]:
    return (origin.span.file, origin.span.line, str(origin)) if origin.span else ("", 0, str(origin))


def unused_text(unused: Unused, *, width: int | None = None, color: bool = False) -> str:
    """Render findings as a table."""
    rows = [
        [
            rule_lines(finding.origin),
            [str(finding.proof)],
            limit(["a default" if origin is None else str(origin) for origin in finding.instead], _MAX_REPLACEMENTS),
        ]
        for finding in unused.rules
    ]
    lines: list[Line] = columns(["RULE", "VERDICT", "DECIDES INSTEAD"], rows)
    if not lines:
        lines = ["every rule is needed: without any of them, some answer would change"]
    lines += [f"{policy} is not needed at all" for policy in unused.policies]
    return "\n".join(lay_out(lines, width, color=color))
