"""The order of rules in a tier, and what holds where the order of policies is not defined.

Policies of one tier are asked by ascending priority, and the first rule that matches decides. Policies of one priority
may be asked in any order, and so may an AdminNetworkPolicy beside a ClusterNetworkPolicy of the Admin tier. A request
is allowed only if every order allows it.

Of all policies that match a request, those can decide that no other has to be asked before: the *candidates*. Every
candidate decides in some order, with its own first rule that matches. So the tier denies if a candidate denies; else it
passes if a candidate passes (for those who accept allow anyway, and what comes after the tier has to allow as well);
else it accepts if a candidate accepts. `in_any_order` writes that as one list of steps, the first of which decides:

    a Deny of a sequence, where nothing before it in its sequence accepts or passes
    a Pass of a sequence, where nothing before it in its sequence accepts
    every Accept

A Pass needs no look at a Deny before it: that has been decided by then, or is hidden by an Accept or a Pass before it.
An Accept needs no look at all: a sequence in which a rule matches, and whose first is neither, accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from eastgate.cluster.points import Direction
from eastgate.dialects.network.model import NetworkPolicy
from eastgate.ir import Effect, Not, Predicate, Rule, Step, all_of, any_of


def order_tier(policies: Iterable[NetworkPolicy], direction: Direction) -> tuple[Step, ...]:
    """Return the rules of the policies of a tier as steps, the first of which decides."""
    by_kind: dict[str, list[NetworkPolicy]] = {}
    for policy in sorted(policies, key=lambda policy: (policy.priority, policy.ref)):
        by_kind.setdefault(policy.ref.kind, []).append(policy)
    return in_any_order([_by_priority(policies, direction) for policies in by_kind.values()])


def _by_priority(policies: Sequence[NetworkPolicy], direction: Direction) -> tuple[Step, ...]:
    steps: list[Step] = []
    for _, equal in groupby(policies, key=lambda policy: policy.priority):
        steps += in_any_order([[rule.step for rule in policy.rules[direction]] for policy in equal])
    return tuple(steps)


def in_any_order(sequences: Sequence[Sequence[Step]]) -> tuple[Step, ...]:
    """Combine sequences of steps, each decided by its first that matches, whose order is not defined."""
    asked = [sequence for sequence in sequences if sequence]
    if len(asked) == 1:
        return tuple(asked[0])
    denying = (step for sequence in asked for step in _unless(sequence, Effect.DENY, (Effect.ACCEPT, Effect.PASS)))
    passing = (step for sequence in asked for step in _unless(sequence, Effect.PASS, (Effect.ACCEPT,)))
    accepting = (step for sequence in asked for step in sequence if step.effect is Effect.ACCEPT)
    return (*denying, *passing, *accepting)


def _unless(sequence: Sequence[Step], effect: Effect, hidden_by: tuple[Effect, ...]) -> Iterator[Step]:
    """Yield the steps of one effect, each where no step of the others before it matches."""
    before: list[Predicate] = []
    for step in sequence:
        if step.effect is effect:
            when = all_of([step.rule.when, Not(any_of(before))]) if before else step.rule.when
            yield Step(Rule(when, step.rule.origin), effect)
        elif step.effect in hidden_by:
            before.append(step.rule.when)
