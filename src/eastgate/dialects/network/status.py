"""The conditions that network policies would show."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster import World
from eastgate.dialects.base import Condition
from eastgate.dialects.network.model import NetworkPolicy
from eastgate.settings import Settings


def conditions(
    policy: NetworkPolicy, _policies: Sequence[NetworkPolicy], _settings: Settings, world: World
) -> list[Condition]:
    """Return whether a policy selects anything."""
    if any(world.select(target) for target in policy.targets):
        message = "it is in audit mode: it is reported and decides nothing" if policy.audit else "it is in order"
        return [Condition("Accepted", "True", "Accepted", message)]
    return [Condition("Accepted", "False", "TargetNotFound", "no pod is selected")]
