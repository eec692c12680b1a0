"""Analysis of a chain: the rules that decide a request before another rule, or beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.dialects.linting import Fallback, Finding, codes
from eastgate.engine.compiled import Program, compile_layers
from eastgate.ir import (
    Chain,
    Derived,
    Effect,
    FirstMatch,
    Is,
    Layer,
    Placement,
    PolicyRef,
    Request,
    Rule,
    RuleKind,
    Stage,
    Step,
    rules_of,
)
from eastgate.ir.attributes import PORT, Attribute
from eastgate.ir.symbolic.cells import ports_named
from eastgate.ir.symbolic.stages import Arm, Move, order_stage
from eastgate.ir.symbolic.witnesses import GaveUp, complete_with_others, find_denied, witness
from eastgate.reports.lint.inventory import Group, PolicyInventory, linting_of

_EFFECTS = {
    Move.ACCEPT: Effect.ACCEPT,
    Move.DENY: Effect.DENY,
    Move.PROCEED: Effect.ACCEPT,
    Move.PASS: Effect.PASS,
}


@dataclass(frozen=True, slots=True)
class ChainRule:
    """A rule in a chain: the index of its stage, its own index in the stage, and its effect."""

    rule: Rule
    stage: int
    number: int
    effect: Effect


def rules_in(chain: Chain) -> Iterator[ChainRule]:
    """Yield every rule that decides by itself, without rules that ask an authorizer."""
    for number, stage in enumerate(chain.stages):
        for index, arm in enumerate(_arms(stage)):
            yield ChainRule(arm.rule, number, index, _EFFECTS[arm.move])


def _arms(stage: Stage) -> list[Arm]:
    """Return the arms of a stage whose rules decide by themselves."""
    ordered = order_stage(stage)
    if any(arm.authorizer is not None for level in ordered for arm in level.arms):
        return []
    return [arm for level in ordered for arm in level.arms]


def _is_ranked(stage: Stage) -> bool:
    """Return whether the order of the rules of a stage matters."""
    return any(ordered.ranked for ordered in order_stage(stage))


class Analysis:
    """A chain of a layer. Programs are compiled on first use."""

    def __init__(self, layer: Layer, chain: Chain) -> None:
        self.layer = layer
        self.chain = chain
        self._before: dict[int, Program] = {}
        self._beside: dict[tuple[int, bool], Program] = {}
        self._ids: dict[int, set[int]] = {}

    @cached_property
    def _looked_at(self) -> frozenset[Attribute]:
        return self.layer.looks_at

    @cached_property
    def _free_port(self) -> int:
        """Return a port that no rule names."""
        asked = (atom for atom in self.chain.atoms(observed=False) if isinstance(atom, Is))
        taken = ports_named(atom.matcher for atom in asked if atom.attribute == PORT)
        return next((port for port in range(65535, 0, -1) if port not in taken), 65535)

    def is_reached_by(self, candidate: ChainRule, witness: Request) -> bool:
        """Return whether a request that a rule matches reaches it, because no earlier rule decides it."""
        request = complete_with_others(witness.values, self._looked_at, self._free_port).assuming(witness.assumed)
        if self._deciding_rule(self._program_before(candidate.stage), request) is not None:
            return False
        if not _is_ranked(self.chain.stages[candidate.stage]):
            return True
        return self._deciding_rule(self._program_beside(candidate.stage, backwards=False), request) is candidate.rule

    def find_decider(self, candidate: ChainRule, witness: Request) -> Rule | None:
        """Find another rule that decides a request before this rule or beside it; None if this rule is needed."""
        request = complete_with_others(witness.values, self._looked_at, self._free_port)
        request = request.assuming(witness.assumed)
        before = self._deciding_rule(self._program_before(candidate.stage), request)
        if before is not None:
            return before
        for backwards in (False, True):
            beside = self._deciding_rule(self._program_beside(candidate.stage, backwards=backwards), request)
            if beside is not None and beside is not candidate.rule:
                return beside
            if _is_ranked(self.chain.stages[candidate.stage]):
                break  # in a ranked stage, only earlier rules count
        return None

    @staticmethod
    def _deciding_rule(program: Program, request: Request) -> Rule | None:
        return program.outcome(program.decide(request)).rule

    def decides_before(self, candidate: ChainRule, rule: Rule) -> bool:
        """Return whether a rule decides before the candidate, other than in the same stage with the same effect."""
        stage = self.chain.stages[candidate.stage]
        if _is_ranked(stage):
            return True
        ids = self._ids.get(candidate.stage)
        if ids is None:
            ids = self._ids[candidate.stage] = {id(member) for member in rules_of(stage)}
        return id(rule) not in ids

    def find_escape(self, candidate: ChainRule, deciding: Sequence[Rule]) -> Request | None:
        """Find a request that a rule matches and that none of these rules decides. Raises GaveUp."""
        kept = {id(rule) for rule in deciding}
        stages = [_only(stage, kept) for stage in self.chain.stages[: candidate.stage]]
        stages.append([Step(rule, Effect.ACCEPT) for rule in self._ranked_before(candidate) if id(rule) in kept])
        last = Step(candidate.rule, Effect.DENY)
        chain = Chain(
            (
                *(FirstMatch("before", tuple(steps), Effect.PASS) for steps in stages if steps),
                FirstMatch("last", (last,), Effect.ACCEPT),
            )
        )
        return find_denied(chain)

    def find_undecided(self, candidate: ChainRule) -> Request | None:
        """Find a request that a rule matches and that no earlier rule decides. Raises GaveUp."""
        before = [rule for stage in self.chain.stages[: candidate.stage] for rule in rules_of(stage)]
        return self.find_escape(candidate, [*before, *self._ranked_before(candidate)])

    def _ranked_before(self, candidate: ChainRule) -> list[Rule]:
        """Return the earlier rules of the same stage, if their order matters."""
        stage = self.chain.stages[candidate.stage]
        return [arm.rule for arm in _arms(stage)[: candidate.number]] if _is_ranked(stage) else []

    def _program_before(self, stage: int) -> Program:
        """Return the program that names the rule of an earlier stage that decides a request."""
        program = self._before.get(stage)
        if program is None:
            stages = [_only(earlier, None) for earlier in self.chain.stages[:stage]]
            program = self._before[stage] = _compiled([steps for steps in stages if steps])
        return program

    def _program_beside(self, stage: int, *, backwards: bool) -> Program:
        """Return the program that names the first, or the last, rule of a stage that matches a request."""
        program = self._beside.get((stage, backwards))
        if program is None:
            rules = list(rules_of(self.chain.stages[stage]))
            steps = [Step(rule, Effect.ACCEPT) for rule in (reversed(rules) if backwards else rules)]
            program = self._beside[stage, backwards] = _compiled([steps])
        return program


def _only(stage: Stage, kept: set[int] | None) -> list[Step]:
    """Return the steps of an earlier stage that decide; for a tier, also those that pass a request on."""
    return [
        Step(arm.rule, Effect.PASS if arm.move is Move.PASS else Effect.ACCEPT)
        for arm in _arms(stage)
        if arm.move is not Move.PROCEED and (kept is None or arm.move is Move.PASS or id(arm.rule) in kept)
    ]


def _compiled(stages: Sequence[Sequence[Step]]) -> Program:
    chain = Chain(tuple(FirstMatch("lint", tuple(steps), Effect.PASS) for steps in stages))
    return compile_layers([Layer(Placement(None, "lint"), chain)])


# Shadowed and redundant rules. They are examined chain by chain, and reported once for each rule. A rule is needed as
# soon as it is needed on one workload. A request that the rule matches is sent through the chain. If another rule
# decides it, that rule becomes a suspect. Then another request is searched that the rule matches and the suspects do
# not. If there is none, the suspects decide all requests of the rule.


RuleKey: TypeAlias = tuple[PolicyRef | None, int, Derived | None]

_MAX_SUSPECTS = 8
_NOT_AUTHORED = (RuleKind.FALLBACK, RuleKind.UNCOVERED, RuleKind.UNREADABLE)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The reason why a rule is not needed in one chain: the rules that decide instead, before it or beside it."""

    rule: Rule
    others: tuple[Rule, ...]
    before: bool
    mutual: bool
    where: Group


def find_shadowed_rules(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report rules that others decide before, cover or duplicate."""
    needed: set[RuleKey] = set()
    idle: dict[RuleKey, list[_Verdict]] = {}
    for group in inventory.groups:
        for layer in group.layers:
            for chain in layer.chains:
                _judge_chain(group, Analysis(layer, chain), needed, idle)
    for key, verdicts in idle.items():
        if key not in needed:
            yield from _findings(verdicts, inventory)


def _judge_chain(group: Group, analysis: Analysis, needed: set[RuleKey], idle: dict[RuleKey, list[_Verdict]]) -> None:
    for candidate in rules_in(analysis.chain):
        key = _key(candidate.rule)
        if not _is_authored(candidate.rule) or key in needed:
            continue
        verdict = _judge(candidate, analysis, group)
        if verdict is None:
            needed.add(key)
            idle.pop(key, None)
        elif verdict.others:
            idle.setdefault(key, []).append(verdict)


def _is_authored(rule: Rule) -> bool:
    """Return whether a rule is written in a policy: not a derived default, and not a substitute for a rule
    with errors.
    """
    return rule.origin.policy is not None and rule.origin.kind not in _NOT_AUTHORED


def _key(rule: Rule) -> RuleKey:
    """Return a key of a rule that is the same in all chains."""
    return rule.origin.policy, rule.origin.index, rule.origin.derived


def _judge(candidate: ChainRule, analysis: Analysis, group: Group) -> _Verdict | None:
    """Return the reason why a rule is not needed; None if it is.

    A rule that no request matches has no cause in another rule.
    """
    wanted = candidate.rule.when
    suspects: list[Rule] = []
    try:
        request = witness(wanted)
        if request is None:
            return _Verdict(candidate.rule, (), True, False, group)
        for _ in range(_MAX_SUSPECTS):
            caught = analysis.find_decider(candidate, request)
            if caught is None or caught in suspects or caught.origin.kind is RuleKind.UNREADABLE:
                return None
            suspects.append(caught)
            if analysis.decides_before(candidate, caught):
                before = [suspect for suspect in suspects if analysis.decides_before(candidate, suspect)]
                if analysis.find_escape(candidate, before) is None:
                    return _Verdict(candidate.rule, _minimize(candidate, before, analysis), True, False, group)
            elif witness(wanted, [caught.when]) is None:
                mutual = witness(caught.when, [wanted]) is None
                return _Verdict(candidate.rule, (caught,), False, mutual, group)
            request = witness(wanted, [suspect.when for suspect in suspects])
            if request is None:
                return None  # only all suspects together cover the rule, and each of them may be needed
    except GaveUp:
        pass
    return None


def _minimize(candidate: ChainRule, rules: Sequence[Rule], analysis: Analysis) -> tuple[Rule, ...]:
    """Remove rules while the others still decide every request before the candidate."""
    kept = list(rules)
    for rule in rules:
        fewer = [other for other in kept if other is not rule]
        if fewer and analysis.find_escape(candidate, fewer) is None:
            kept = fewer
    return tuple(kept)


def _findings(verdicts: list[_Verdict], inventory: PolicyInventory) -> Iterator[Finding]:
    """Report a rule that is needed nowhere. It "never matches" only if other rules decide before it in every chain."""
    never = all(verdict.before for verdict in verdicts)
    verdicts = [verdict for verdict in verdicts if verdict.before == never]
    rule = verdicts[0].rule
    others = sorted({_key(other): other for verdict in verdicts for other in verdict.others}.values(), key=_order)
    origins = [other.origin for other in others]
    names = " and ".join(map(str, origins))
    lines = ", ".join(origin.span.location for origin in origins if origin.span)
    where = f"see {lines}" if lines else ""
    refs = {str(origin.policy) for origin in origins if origin.policy is not None}
    subjects = (str(rule.origin.policy), *sorted(refs - {str(rule.origin.policy)}))
    if never:
        come = "comes" if len(others) == 1 else "come"
        message = f"{rule.origin} can never match: {names} {come} first for every request that it matches"
        yield Finding(codes.SHADOWED, message, rule.origin.span, f"{where}; remove it, or narrow the other", subjects)
    elif all(origin.kind is RuleKind.FALLBACK for origin in origins):
        fallback = _fallback(others[0], inventory)
        message = fallback.message(names, rule.origin.policy)
        yield Finding(fallback.code, message, rule.origin.span, f"{where}; {fallback.help}", subjects)
    elif any(verdict.mutual for verdict in verdicts):
        if _is_later(rule, others):
            message = f"{rule.origin} says the same as {names}"
            yield Finding(codes.DUPLICATE, message, rule.origin.span, f"{where}; remove one of the two", subjects)
    else:
        message = f"{rule.origin} is not needed: {names} {'covers' if len(others) == 1 else 'cover'} it"
        yield Finding(codes.REDUNDANT, message, rule.origin.span, f"{where}; remove it, or narrow the other", subjects)


def _fallback(rule: Rule, inventory: PolicyInventory) -> Fallback:
    """Return how the dialect reports rules that an object adds by itself."""
    policy = inventory.policy_of(rule)
    fallback = linting_of(policy).fallback if policy is not None else None
    if fallback is None:
        raise TypeError(f"{rule.origin} is of a dialect that does not know such rules")
    return fallback


def _is_later(rule: Rule, others: Sequence[Rule]) -> bool:
    """Return whether a rule comes after another, by file, line and name. Only the later of two is reported."""
    return any(_order(rule) > _order(other) for other in others)


def _order(rule: Rule) -> tuple[str, int, int, str]:
    span = rule.origin.span
    return (span.file, span.line, span.column, str(rule.origin)) if span else ("", 0, 0, str(rule.origin))
