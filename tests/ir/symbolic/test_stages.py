"""The five stages in ordered form."""

from __future__ import annotations

import pytest

from eastgate.ir import (
    ALWAYS,
    AllowAny,
    And,
    Ask,
    AskAll,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Observe,
    OneOf,
    Origin,
    PolicyRef,
    Refusal,
    Rule,
    Stage,
    Step,
)
from eastgate.ir.attributes import METHOD
from eastgate.ir.symbolic.stages import Arm, Move, Ordering, allow_lists, answer_attribute, order_chain, order_stage

GET = Is(METHOD, OneOf(frozenset({"GET"})))
P, Q = (Rule(GET, Origin(PolicyRef("P", "n", name), 0)) for name in "pq")
CONSENTED = And((GET, Is(answer_attribute("z"), OneOf(frozenset({"allow"})))))
DENY, ALLOW = Deny("deny", (P, Q), Refusal.NOT_FOUND), AllowAny("allow", (P, Q))
TIER = FirstMatch("tier", (Step(P, Effect.ACCEPT), Step(Q, Effect.PASS), Step(P, Effect.DENY)), Effect.DENY)
ASK = AskAll("ask", (Ask(P, "z"), Ask(Q, "z")))


@pytest.mark.parametrize(
    ("stage", "arms", "otherwise", "ranked"),
    [
        (DENY, [Arm(GET, P, Move.DENY), Arm(GET, Q, Move.DENY)], Move.PASS, False),
        (ALLOW, [Arm(GET, P, Move.PROCEED), Arm(GET, Q, Move.PROCEED)], Move.DENY, False),
        (TIER, [Arm(GET, P, Move.ACCEPT), Arm(GET, Q, Move.PASS), Arm(GET, P, Move.DENY)], Move.DENY, True),
    ],
)
def test_the_first_arm_that_holds_counts(stage: Stage, arms: list[Arm], otherwise: Move, ranked: bool) -> None:
    (ordered,) = order_stage(stage)
    assert isinstance(stage, Deny | AllowAny | FirstMatch)
    assert (ordered.name, ordered.refusal) == (stage.name, stage.refusal)
    assert list(ordered.arms) == arms
    assert (ordered.otherwise, ordered.ranked) == (otherwise, ranked)


def test_each_authorizer_is_a_stage_of_its_own() -> None:
    for ordered, rule in zip(order_stage(ASK), (P, Q), strict=True):
        asked, denied = Arm(CONSENTED, rule, Move.PROCEED, "z"), Arm(GET, rule, Move.DENY, "z")
        assert (ordered.name, ordered.arms, ordered.otherwise) == ("ask", (asked, denied), Move.PASS)
        assert not ordered.ranked
        assert list(ordered.denying) == [denied]
        assert list(ordered.accepting) == []  # acceptance depends on the answer


def test_observed_rules_make_no_stage_and_the_others_keep_their_order() -> None:
    chain = Chain((Observe("audit", (P,), ("DENY",)), DENY, ALLOW, TIER))
    assert [stage.name for stage in order_chain(chain)] == ["deny", "allow", "tier"]
    assert [stage.name for stage in allow_lists(chain)] == ["allow", "tier"]


def test_arms_that_accept_and_arms_that_deny() -> None:
    deny, allow, tier = order_chain(Chain((DENY, ALLOW, TIER)))
    assert [arm.rule for arm in deny.denying] == [P, Q]
    assert list(deny.accepting) == list(allow.denying) == []
    assert [arm.rule for arm in allow.accepting] == [P, Q]
    assert [arm.move for arm in (*tier.accepting, *tier.denying)] == [Move.ACCEPT, Move.DENY]


def test_a_stage_is_ordered_once() -> None:
    order = Ordering()
    assert order(DENY) is order(DENY)
    assert order(ALLOW)[0].name == "allow"
    assert order(Deny("other", (Rule(ALWAYS, P.origin),)))[0].name == "other"
