"""The condition that a policy would show: `Accepted`, with Gateway API's reasons for policies."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster import World
from eastgate.cluster.targets import PodsOfService
from eastgate.dialects.base import Condition
from eastgate.dialects.gep3779.model import Policy
from eastgate.settings import Settings, Sidecars


def conditions(policy: Policy, _policies: Sequence[Policy], settings: Settings, world: World) -> list[Condition]:
    """Return the condition `Accepted`.

    A Service that does not exist is a target not found; a selector that selects nothing now may select later.
    """
    services = [target for target in policy.targets if isinstance(target, PodsOfService)]
    names = [f"{target.namespace}/{target.service}" for target in services]
    missing = [name for name in names if name not in world.services]
    undeclared = f"no manifest declares Service {', '.join(missing)}"
    if missing and len(missing) == len(policy.targets):
        return [Condition("Accepted", "False", "TargetNotFound", undeclared)]
    if not any(world.select(target) for target in policy.targets):
        return [Condition("Accepted", "True", "Accepted", "it is in order, and selects no workload now")]
    in_force = "it is in force" if settings.sidecars is Sidecars.ASSUMED else "it is valid, and its target exists"
    message = "it is in audit mode: it is reported and decides nothing" if policy.audit else in_force
    return [Condition("Accepted", "True", "Accepted", f"{message}; {undeclared}" if missing else message)]
