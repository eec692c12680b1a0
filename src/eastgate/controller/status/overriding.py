"""Where a policy that gives way to others is not asked: a default of the cluster, where a namespace has policies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eastgate import dialects
from eastgate.basics.records import dataclass
from eastgate.controller.conditions import ConditionStatus, StatusCondition
from eastgate.controller.status.programmed import PARTIALLY_PROGRAMMED, join_names
from eastgate.dialects import Policy
from eastgate.engine.compiled import Program
from eastgate.engine.programs import Programs
from eastgate.ir import PolicyRef

_OVERRIDDEN = "Overridden"


@dataclass(frozen=True, slots=True)
class Overriding:
    """The number of workloads at which a policy is not asked, of how many, and the policies that are in its place."""

    overridden: int
    total: int
    others: frozenset[PolicyRef]

    def limit(self, programmed: StatusCondition) -> StatusCondition:
        """Return the condition of the policy, from what it would be if it were asked everywhere."""
        by = f"by {join_names(map(str, self.others))}"
        if self.overridden == self.total:
            return StatusCondition.false("Programmed", _OVERRIDDEN, f"overridden everywhere, {by}")
        if programmed.status is not ConditionStatus.TRUE:
            message = f"{programmed.message}; overridden at {self.overridden}, {by}"
            return replace(programmed, message=message)
        in_force = self.total - self.overridden
        message = f"in force at {in_force} of {self.total}; overridden at {self.overridden}, {by}"
        return StatusCondition.true("Programmed", PARTIALLY_PROGRAMMED, message)


def find_overriding(policy: Policy, nodes: Iterable[str], engine: Programs[Policy]) -> Overriding | None:
    """Return where a policy of the cluster is not asked; None where it is asked everywhere, or only observed."""
    if policy.audit or next(iter(policy.origins), None) is None:
        return None
    asked: dict[int, bool] = {}
    overridden: list[str] = []
    workloads = [node for node in nodes if node in engine.world.workloads]
    for node in workloads:
        program = engine.program(node)
        if id(program) not in asked:
            asked[id(program)] = policy.ref in _refs(program)
        if not asked[id(program)]:
            overridden.append(node)
    if not overridden:
        return None
    dialect = dialects.dialect_of(policy)
    others = {
        attachment.policy.ref
        for node in overridden
        for attachment in engine.attached(node)
        if isinstance(attachment.policy, dialect.model) and attachment.policy.ref.namespace is not None
    }
    return Overriding(len(overridden), len(workloads), frozenset(others))


def _refs(program: Program) -> set[PolicyRef | None]:
    """Return the policies whose rules a program asks."""
    chains = (chain for layer in program.layers for chain in layer.chains)
    return {rule.origin.policy for chain in chains for rule in chain.rules(observed=False)}
