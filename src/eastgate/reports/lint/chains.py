"""Analysis of a chain: which rules decide a request before another rule does, or beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from eastgate.basics.records import dataclass
from eastgate.engine.compiled import Program, compile_layers
from eastgate.ir import Chain, Effect, FirstMatch, Is, Layer, Placement, Request, Rule, Stage, Step, rules_of
from eastgate.ir.attributes import PORT, Attribute
from eastgate.ir.symbolic.cells import ports_named
from eastgate.ir.symbolic.stages import Arm, Move, order_stage
from eastgate.ir.symbolic.witnesses import complete_with_others, find_denied

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
    """Yield every rule that decides by itself, leaving out those that an authorizer decides."""
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
    """Return whether the order of the rules of a stage counts."""
    return any(ordered.ranked for ordered in order_stage(stage))


class Analysis:
    """A chain of a layer. Programs are made when they are first needed."""

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
        """Return whether a request that a rule matches reaches it: no earlier rule decides it."""
        request = complete_with_others(witness.values, self._looked_at, self._free_port).assuming(witness.assumed)
        if self._deciding_rule(self._program_before(candidate.stage), request) is not None:
            return False
        if not _is_ranked(self.chain.stages[candidate.stage]):
            return True
        return self._deciding_rule(self._program_beside(candidate.stage, backwards=False), request) is candidate.rule

    def find_decider(self, candidate: ChainRule, witness: Request) -> Rule | None:
        """Find another rule that decides a request before this rule or beside it; None where this one is needed."""
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
                break  # there only what comes earlier counts
        return None

    @staticmethod
    def _deciding_rule(program: Program, request: Request) -> Rule | None:
        return program.outcome(program.decide(request)).rule

    def decides_before(self, candidate: ChainRule, rule: Rule) -> bool:
        """Return whether a rule decides before the candidate, and is not one of the same stage with the same effect."""
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
        """Find a request that a rule matches and that nothing decides before. Raises GaveUp."""
        before = [rule for stage in self.chain.stages[: candidate.stage] for rule in rules_of(stage)]
        return self.find_escape(candidate, [*before, *self._ranked_before(candidate)])

    def _ranked_before(self, candidate: ChainRule) -> list[Rule]:
        """Return the rules before a rule in its own stage, where their order counts."""
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
    """Return the steps of an earlier stage that decide, for or against; of a tier also those that pass it over."""
    return [
        Step(arm.rule, Effect.PASS if arm.move is Move.PASS else Effect.ACCEPT)
        for arm in _arms(stage)
        if arm.move is not Move.PROCEED and (kept is None or arm.move is Move.PASS or id(arm.rule) in kept)
    ]


def _compiled(stages: Sequence[Sequence[Step]]) -> Program:
    chain = Chain(tuple(FirstMatch("lint", tuple(steps), Effect.PASS) for steps in stages))
    return compile_layers([Layer(Placement(None, "lint"), chain)])
