"""A generated world, ready to be asked, with the answers of the reference evaluator to compare with."""

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
    """A plan with the engine that decides by it. `seconds` is what the engine took, from objects to all programs."""

    plan: Plan
    world: LiveWorld
    policies: list[Policy]
    engine: Engine[Policy]
    classes: int
    seconds: float

    @classmethod
    def of(cls, plan: Plan) -> Built:
        """Build and compile everything."""
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
        """Every point of enforcement."""
        return [*self.world.workloads, *(GatewayNamed(namespace, name) for namespace, name in self.plan.gateways)]

    @cached_property
    def _by_name(self) -> dict[str, Point]:
        return {str(point): point for point in self.points}

    @cached_property
    def targeted(self) -> list[str]:
        """The names of the points that some policy targets."""
        return [str(point) for point in self.points if self.engine.attached(point)]

    @cached_property
    def plans(self) -> dict[tuple[str | None, str], PolicyPlan]:
        """The plan of each policy, by namespace and name."""
        return {(one.namespace, one.name): one for one in self.plan.policies}

    def plans_on(self, point: str) -> list[PolicyPlan]:
        """The policies that target a point, by its name."""
        refs = (one.policy.ref for one in self.engine.attached(self._by_name[point]))
        return [self.plans[ref.namespace, ref.name] for ref in refs]

    def questions(self, asks: Iterable[Ask]) -> list[tuple[Point, Request]]:
        """What the engine is asked, built before it is."""
        return [(self._by_name[ask.workload], request_of(ask)) for ask in asks]


def check_reference(engine: Engine[Policy], questions: Iterable[tuple[Point, Request]]) -> int:
    """Ask the reference evaluator too, and fail where it says anything else; tells how many were asked."""
    asked = 0
    for workload, request in questions:
        program = engine.program(workload)
        said, wanted = program.outcome(engine.decide(workload, request)), reference.decide(program.layers, request)
        if said != wanted:
            raise AssertionError(f"the engine says {said} and the reference evaluator {wanted} of {request}")
        asked += 1
    return asked
