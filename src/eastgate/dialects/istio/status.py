"""The conditions that a policy would show: whether something that it is about exists."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster import GatewayNamed, GatewaysMatching, World
from eastgate.cluster.points import NamedPoint
from eastgate.dialects.base import Condition
from eastgate.dialects.istio.model import IstioPolicy
from eastgate.settings import Settings


def conditions(
    policy: IstioPolicy, _policies: Sequence[IstioPolicy], _settings: Settings, world: World
) -> list[Condition]:
    """Return the condition `Accepted`: a Gateway or Service that does not exist is a target not found."""
    missing = [
        f"{ref.kind} {policy.namespace}/{ref.name}"
        for ref in policy.refs
        if not _exists(policy, ref.kind, ref.name, world)
    ]
    undeclared = f"no manifest declares {', '.join(missing)}"
    if missing and len(missing) == len(policy.refs):
        return [Condition("Accepted", "False", "TargetNotFound", undeclared)]
    if not any(_selects(target, world) for target in policy.targets):
        return [Condition("Accepted", "True", "Accepted", "it is in order, and selects no workload now")]
    message = (
        "it is a dry run, or in audit mode: it is reported and decides nothing" if policy.audit else "it is in force"
    )
    return [Condition("Accepted", "True", "Accepted", f"{message}; {undeclared}" if missing else message)]


def _exists(policy: IstioPolicy, kind: str, name: str, world: World) -> bool:
    key = f"{policy.namespace}/{name}"
    match kind:
        case "Gateway":
            return key in world.gateways
        case "Service":
            return key in world.services
        case _:
            return True  # nobody reads these


def _selects(target: object, world: World) -> bool:
    match target:
        case GatewaysMatching():
            return bool(world.select_gateways(target))
        case GatewayNamed(namespace, name):
            return f"{namespace}/{name}" in world.gateways
        case _:
            return isinstance(target, NamedPoint) or bool(world.select(target))  # type: ignore[arg-type]
