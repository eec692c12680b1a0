"""Stages in one form: ordered arms, of which the FIRST that holds says what follows.

    Deny        each arm denies; otherwise the next stage is asked
    AllowAny    each arm accepts, and the next stage is asked; otherwise denied
    FirstMatch  each arm accepts for good, denies or passes; otherwise as written
    AskAll      a stage for each authorizer: where it is asked and allows, accepted; where it is asked, denied
    Observe     no stage: it decides nothing

This is the only reading of the five stages in the symbolic half: trees, three-valued judgements, traces and lint work
on the ordered form.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

from eastgate.basics.records import dataclass
from eastgate.ir import (
    AllowAny,
    AskAll,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Observe,
    OneOf,
    Predicate,
    Refusal,
    Rule,
    Stage,
    all_of,
)
from eastgate.ir.attributes import Attribute, AttributeKind

_ALLOWS = OneOf(frozenset({"allow"}))


class Move(enum.Enum):
    """The move that follows where an arm of a stage holds."""

    ACCEPT = "accept"  # the chain ends: allowed
    DENY = "deny"  # the chain ends: denied
    PROCEED = "proceed"  # accepted by this rule; the next stage is asked
    PASS = "pass"  # noqa: S105 - not a password; the next stage is asked


_EFFECTS = {Effect.ACCEPT: Move.ACCEPT, Effect.DENY: Move.DENY, Effect.PASS: Move.PASS}


@dataclass(frozen=True, slots=True)
class Arm:
    """A condition, the rule that brings it, and what follows where it holds.

    `authorizer` is who is asked, where the answer of an external authorizer decides between this arm and the next.
    """

    when: Predicate
    rule: Rule
    move: Move
    authorizer: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OrderedStage:
    """A stage whose FIRST arm that holds counts, else `otherwise`."""

    name: str
    refusal: Refusal
    arms: tuple[Arm, ...]
    otherwise: Move
    ranked: bool = False  # its authors gave the rules an order; elsewhere all arms of rules do the same

    @property
    def denies_by_default(self) -> bool:
        """Return whether it is an allow list: what none of its rules accepts is denied."""
        return self.otherwise is Move.DENY

    @property
    def denying(self) -> Iterator[Arm]:
        """Yield the arms that deny; by the answer of an authorizer, too."""
        return (arm for arm in self.arms if arm.move is Move.DENY)

    @property
    def accepting(self) -> Iterator[Arm]:
        """Yield the arms that accept whatever an authorizer answers."""
        return (arm for arm in self.arms if arm.move in (Move.ACCEPT, Move.PROCEED) and arm.authorizer is None)


def answer_attribute(authorizer: str) -> Attribute:
    """Return the attribute that holds the answer of an external authorizer: `allow`, anything else, or absent."""
    return Attribute(AttributeKind.ANSWER, authorizer)


def is_answer(attribute: Attribute) -> bool:
    """Tell whether an attribute is the answer of an external authorizer."""
    return attribute.kind is AttributeKind.ANSWER


def order_chain(chain: Chain) -> list[OrderedStage]:
    """Return the stages of a chain that decide, in order."""
    return [ordered for stage in chain.stages for ordered in order_stage(stage)]


def allow_lists(chain: Chain) -> Iterator[OrderedStage]:
    """Yield the stages of a chain that deny what none of their rules accepts."""
    return (stage for stage in order_chain(chain) if stage.denies_by_default)


def order_stage(stage: Stage) -> Sequence[OrderedStage]:
    """Return one stage in ordered form; several for `AskAll`, and none for what is only observed."""
    match stage:
        case Observe():
            return ()
        case Deny(name, rules, refusal):
            return (OrderedStage(name, refusal, tuple(Arm(rule.when, rule, Move.DENY) for rule in rules), Move.PASS),)
        case AllowAny(name, rules, refusal):
            arms = tuple(Arm(rule.when, rule, Move.PROCEED) for rule in rules)
            return (OrderedStage(name, refusal, arms, Move.DENY),)
        case FirstMatch(name, steps, otherwise, refusal):
            arms = tuple(Arm(step.rule.when, step.rule, _EFFECTS[step.effect]) for step in steps)
            return (OrderedStage(name, refusal, arms, _EFFECTS[otherwise], ranked=True),)
        case AskAll(name, asks, refusal):
            return [
                OrderedStage(
                    name,
                    refusal,
                    (
                        Arm(_consented(ask.rule, ask.authorizer), ask.rule, Move.PROCEED, ask.authorizer),
                        Arm(ask.rule.when, ask.rule, Move.DENY, ask.authorizer),
                    ),
                    Move.PASS,
                )
                for ask in asks
            ]


class Ordering:
    """Orders stages, each once, for callers that look at the same stages again and again."""

    def __init__(self) -> None:
        self._ordered: dict[int, tuple[Stage, Sequence[OrderedStage]]] = {}  # the stage is kept, and so its id

    def __call__(self, stage: Stage) -> Sequence[OrderedStage]:
        """Return a stage in ordered form."""
        cached = self._ordered.get(id(stage))
        if cached is None:
            cached = self._ordered[id(stage)] = stage, order_stage(stage)
        return cached[1]


def _consented(rule: Rule, authorizer: str) -> Predicate:
    return all_of((rule.when, Is(answer_attribute(authorizer), _ALLOWS)))
