"""The condition that a policy would show: `Accepted`, with Gateway API's reasons for policies."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster import World
from eastgate.cluster.targets import PodsOfService
from eastgate.dialects.base import Condition
from eastgate.dialects.gep3779.model import Policy
from eastgate.settings import Settings

__all__ = ["accepted"]


def accepted(policy: Policy, _policies: Sequence[Policy], _settings: Settings, world: World) -> list[Condition]:
    """A Service that is not there is a target not found; a selector that selects nothing now may select later."""
    services = [target for target in policy.targets if isinstance(target, PodsOfService)]
    missing = [one for one in services if f"{one.namespace}/{one.service}" not in world.services]
    if missing and len(missing) == len(policy.targets):
        names = ", ".join(f"{one.namespace}/{one.service}" for one in missing)
        return [Condition("Accepted", "False", "TargetNotFound", f"no manifest declares Service {names}")]
    if not any(world.select(target) for target in policy.targets):
        return [Condition("Accepted", "True", "Accepted", "it is in order, and selects no workload now")]
    said = "it is in audit mode: it is reported and decides nothing" if policy.audit else "it is in force"
    if missing:
        said += f"; no manifest declares Service {', '.join(f'{one.namespace}/{one.service}' for one in missing)}"
    return [Condition("Accepted", "True", "Accepted", said)]
