"""A generated world with a compiled engine, and the comparison with the reference evaluator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from bench.objects import engine_of, policy_of, request_of, world_of
from bench.plans import Ask, Plan, PolicyPlan
from bench.timing import once
from eastgate.cluster import GatewayNamed, LiveWorld
from eastgate.cluster.points import Point
from eastgate.dialects import Policy
from eastgate.engine import reference
from eastgate.engine.engine import Engine
from eastgate.ir import Request

__all__ = ["Built", "check_reference"]


@dataclass
class Built:
    """A plan and its compiled engine. `seconds` is the time from objects to the programs of all points."""

    plan: Plan
    world: LiveWorld
    policies: list[Policy]
    engine: Engine[Policy]
    classes: int
    seconds: float

    @classmethod
    def of(cls, plan: Plan) -> Built:
        """Build the world of a plan, and compile all of it."""
        world, policies = world_of(plan), [policy_of(one) for one in plan.policies]
        engines: list[Engine[Policy]] = []

        gateways = [GatewayNamed(namespace, name) for namespace, name in plan.gateways]

        def compile_all() -> None:
            engines.append(engine_of(world, policies))
            engines[0].compile_all()
            for gateway in gateways:
                engines[0].program(gateway)

        seconds = once(compile_all)
        return cls(plan, world, policies, engines[0], engines[0].compile_all() + len(gateways), seconds)

    @property
    def points(self) -> list[Point]:
        """Return every point of enforcement."""
        return [*self.world.workloads, *(GatewayNamed(namespace, name) for namespace, name in self.plan.gateways)]

    @cached_property
    def _by_name(self) -> dict[str, Point]:
        return {str(point): point for point in self.points}

    @cached_property
    def targeted(self) -> list[str]:
        """Return the names of the points that a policy targets."""
        return [str(point) for point in self.points if self.engine.attached(point)]

    @cached_property
    def plans(self) -> dict[tuple[str | None, str], PolicyPlan]:
        """Return the plan of each policy, by namespace and name."""
        return {(one.namespace, one.name): one for one in self.plan.policies}

    def plans_on(self, point: str) -> list[PolicyPlan]:
        """Return the plans of the policies that target the point with this name."""
        refs = (one.policy.ref for one in self.engine.attached(self._by_name[point]))
        return [self.plans[ref.namespace, ref.name] for ref in refs]

    def questions(self, asks: Iterable[Ask]) -> list[tuple[Point, Request]]:
        """Return the arguments of `Engine.decide` for each question, built beforehand."""
        return [(self._by_name[ask.workload], request_of(ask)) for ask in asks]


def check_reference(engine: Engine[Policy], questions: Iterable[tuple[Point, Request]]) -> int:
    """Compare the engine with the reference evaluator. Return the number of questions; fail on a difference."""
    asked = 0
    for workload, request in questions:
        program = engine.program(workload)
        outcome, expected = program.outcome(engine.decide(workload, request)), reference.decide(program.layers, request)
        if outcome != expected:
            raise AssertionError(f"{request}: the engine answers {outcome}, the reference evaluator {expected}")
        asked += 1
    return asked
