"""Stages in one form: ordered arms. The FIRST arm that holds decides the next move.

    Deny        each arm denies; otherwise the next stage follows
    AllowAny    each arm accepts, and the next stage follows; otherwise denied
    FirstMatch  each arm accepts (and ends the chain), denies or passes; otherwise as written
    AskAll      a stage for each authorizer: an arm for "asked and allows" accepts, an arm for "asked" denies
    Observe     no stage: it decides nothing

All symbolic code reads stages in this form: trees, three-valued evaluation, traces and lint.
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
    """The move that follows if an arm of a stage holds."""

    ACCEPT = "accept"  # the chain ends: allowed
    DENY = "deny"  # the chain ends: denied
    PROCEED = "proceed"  # accepted by this rule; the next stage follows
    PASS = "pass"  # noqa: S105 - not a password; the next stage follows


_EFFECTS = {Effect.ACCEPT: Move.ACCEPT, Effect.DENY: Move.DENY, Effect.PASS: Move.PASS}


@dataclass(frozen=True, slots=True)
class Arm:
    """A condition, its rule, and the move that follows if the condition holds.

    `authorizer` is the authorizer whose answer decides between this arm and the next, if any.
    """

    when: Predicate
    rule: Rule
    move: Move
    authorizer: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OrderedStage:
    """A stage whose FIRST arm that holds decides. If none holds, `otherwise` decides."""

    name: str
    refusal: Refusal
    arms: tuple[Arm, ...]
    otherwise: Move
    ranked: bool = False  # the rules have an order; in other stages all arms of rules have the same move

    @property
    def denies_by_default(self) -> bool:
        """Return whether the stage is an allow list: it denies requests that none of its rules accepts."""
        return self.otherwise is Move.DENY

    @property
    def denying(self) -> Iterator[Arm]:
        """Yield the arms that deny, including arms that deny by the answer of an authorizer."""
        return (arm for arm in self.arms if arm.move is Move.DENY)

    @property
    def accepting(self) -> Iterator[Arm]:
        """Yield the arms that accept without the answer of an authorizer."""
        return (arm for arm in self.arms if arm.move in (Move.ACCEPT, Move.PROCEED) and arm.authorizer is None)


def answer_attribute(authorizer: str) -> Attribute:
    """Return the attribute for the answer of an external authorizer: `allow`, another text, or absent."""
    return Attribute(AttributeKind.ANSWER, authorizer)


def is_answer(attribute: Attribute) -> bool:
    """Return whether an attribute is the answer of an external authorizer."""
    return attribute.kind is AttributeKind.ANSWER


def order_chain(chain: Chain) -> list[OrderedStage]:
    """Return the stages of a chain that decide, in order."""
    return [ordered for stage in chain.stages for ordered in order_stage(stage)]


def allow_lists(chain: Chain) -> Iterator[OrderedStage]:
    """Yield the stages of a chain that deny requests that none of their rules accepts."""
    return (stage for stage in order_chain(chain) if stage.denies_by_default)


def order_stage(stage: Stage) -> Sequence[OrderedStage]:
    """Return one stage in ordered form: several stages for `AskAll`, and none for `Observe`."""
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
    """Orders each stage once, for callers that read the same stages many times."""

    def __init__(self) -> None:
        self._ordered: dict[int, tuple[Stage, Sequence[OrderedStage]]] = {}  # the stage, so that its id stays valid

    def __call__(self, stage: Stage) -> Sequence[OrderedStage]:
        """Return a stage in ordered form."""
        cached = self._ordered.get(id(stage))
        if cached is None:
            cached = self._ordered[id(stage)] = stage, order_stage(stage)
        return cached[1]


def _consented(rule: Rule, authorizer: str) -> Predicate:
    return all_of((rule.when, Is(answer_attribute(authorizer), _ALLOWS)))
