"""The cost of a full compile, and of a change with the next decision of every workload that it touches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from bench.built import Built, check_reference
from bench.objects import engine_of, policy_of, request_of
from bench.plans import Ask, RulePlan
from bench.report import Section, Target
from bench.timing import interleaved, median_of
from bench.worlds import ask_some, crowded
from eastgate.cluster import LiveWorld, Pod
from eastgate.cluster.points import Point
from eastgate.dialects import Policy
from eastgate.engine.engine import Engine
from eastgate.ir import Request

__all__ = ["Change"]

_MIN_RATIO = 100  # of a full compile to a policy change, at 10,000 policies
_CHANGED_RULE = RulePlan(accounts=("team-0/app-0", "team-1/*"), ports=(8080,))
_REQUEST = request_of(Ask("", "spiffe://cluster.local/ns/team-0/sa/app-0", 8080))


class Change:
    """A table with one row for each world."""

    def __init__(self, *, quick: bool) -> None:
        self._quick = quick
        self._changes = 50 if quick else 200
        self._parts: dict[int, float] = {}
        self.section = Section(
            "A full compile, and changes",
            "CPU. full: from policies and a world, as objects, to the programs of all workloads (median of two; once "
            "at 100,000). policy: a policy gets another rule. pod: a pod gets another label. Then one decision at each "
            f"workload that it touched. Median of {self._changes} changes. one in: how many changes cost as much as a "
            "full compile.",
            ("policies", "pods", "full ms", "policy us", "touches", "one in", "pod us", "one in"),
        )

    def add(self, built: Built) -> None:
        """Measure one world. This changes its policies and pods."""
        random = Random(len(built.policies))
        engine = built.engine
        full = built.seconds
        if len(built.policies) <= 10_000:
            full = interleaved(2, lambda: engine_of(built.world, built.policies).compile_all())[0]
        plans = random.sample(range(len(built.policies)), min(self._changes, len(built.policies)))
        changed = [
            policy_of(replace(plan, rules=(*plan.rules, _CHANGED_RULE)))
            for plan in (built.plan.policies[place] for place in plans)
        ]
        pods = random.sample(list(built.plan.pods), min(self._changes, len(built.plan.pods)))
        touched: list[int] = []
        policy = median_of([_put_policy(engine, one, touched) for one in changed])
        moved = [replace(pod, labels={**pod.labels, "tier": "tier-9"}) for pod in pods]
        pod = median_of([_put_pod(engine, built.world, pod) for pod in moved])
        questions = built.questions(ask_some(built.plan, built.targeted, 200))
        check_reference(engine, questions)
        if len(built.policies) <= 10_000:
            _check_fresh(engine, questions)
        self._parts[len(built.policies)] = full / policy
        touches = sum(touched) / len(touched)
        self.section.rows.append(
            [
                len(built.policies), len(built.plan.pods), full * 1e3,
                policy * 1e6, touches, full / policy, pod * 1e6, full / pod,
            ]
        )  # fmt: skip

    def conclude(self) -> Section:
        """Return the table with its target, and notes about one workload with many policies."""
        part = self._parts[10_000]
        self.section.targets = [
            Target(
                f"a policy change at 10,000 policies costs under 1/{_MIN_RATIO} of a full compile",
                f"1/{part:.0f}",
                part > _MIN_RATIO,
            )
        ]
        for policies in (100, 1_000) if self._quick else (100, 1_000, 10_000):
            built = Built.of(crowded(policies))
            again = [built.policies[place % policies] for place in range(9)]
            took = median_of([_put_policy(built.engine, one, []) for one in again])
            self.section.notes.append(
                f"a policy change on one workload with {policies:,} policies: {took * 1e3:.2f} ms"
            )
        return self.section


def _put_policy(engine: Engine[Policy], policy: Policy, touched: list[int]) -> Callable[[], None]:
    def change() -> None:
        workloads = engine.put_policy(policy)
        for workload in workloads:
            engine.decide(workload, _REQUEST)
        touched.append(len(workloads))

    return change


def _put_pod(engine: Engine[Policy], world: LiveWorld, pod: Pod) -> Callable[[], None]:
    def change() -> None:
        for workload in world.put(pod).workloads:
            engine.decide(workload, _REQUEST)

    return change


def _check_fresh(engine: Engine[Policy], questions: list[tuple[Point, Request]]) -> None:
    """Fail if the changed engine decides differently from a new engine with the same world and policies."""
    fresh = engine_of(engine.world, engine.policies)
    for workload, request in questions:
        if fresh.decide(workload, request) != engine.decide(workload, request):
            raise AssertionError(f"a changed engine decides differently from a new one: {workload} {request}")
