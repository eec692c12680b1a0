"""Descriptions of GEP-3779 policies."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from eastgate.cluster import World
from eastgate.cluster.targets import PodsOfService
from eastgate.dialects import words
from eastgate.dialects.base import Condition
from eastgate.dialects.gep3779.model import Policy, Tier
from eastgate.dialects.gep3779.provenance import PLACEMENTS
from eastgate.dialects.words import (
    NO_RULES,
    NOTHING_SELECTED,
    DescribedRule,
    LayerMode,
    Words,
    describe_rules,
    modes_of_layer,
)
from eastgate.ir import Layer
from eastgate.settings import Settings, Sidecars

# The condition of a policy: `Accepted`, with Gateway API's reasons for policies.


def conditions(policy: Policy, _policies: Sequence[Policy], settings: Settings, world: World) -> list[Condition]:
    """Return the condition `Accepted`.

    A missing Service is a target that is not found. A selector without pods is accepted, because it may select pods
    later.
    """
    services = [target for target in policy.targets if isinstance(target, PodsOfService)]
    names = [f"{target.namespace}/{target.service}" for target in services]
    missing = [name for name in names if name not in world.services]
    undeclared = f"no manifest declares Service {', '.join(missing)}"
    if missing and len(missing) == len(policy.targets):
        return [Condition("Accepted", "False", "TargetNotFound", undeclared)]
    if not any(world.select(target) for target in policy.targets):
        return [Condition("Accepted", "True", "Accepted", "it is valid, and selects no workload now")]
    in_force = "it is in force" if settings.sidecars is Sidecars.ASSUMED else "it is valid, and its target exists"
    message = "it is in audit mode: it is reported and decides nothing" if policy.audit else in_force
    return [Condition("Accepted", "True", "Accepted", f"{message}; {undeclared}" if missing else message)]


def _rules(policy: Policy) -> list[DescribedRule]:
    return describe_rules(str(policy.action), policy.rules)


def _tier(policy: Policy) -> words.DescribedTier | None:
    return words.DescribedTier(str(policy.tier), policy.priority) if policy.tier is not Tier.NAMESPACED else None


def _why_idle(policy: Policy, problem: str | None, selects: bool) -> str:
    if not selects:
        return problem or NOTHING_SELECTED
    if policy.tier is Tier.BASELINE:
        return "each selected workload has namespaced policies at this level, which replace the baseline"
    return NO_RULES


def _modes(layer: Layer, policies: Sequence[Policy], _stance: Hashable) -> list[LayerMode]:
    """Return the modes of a level. Namespaced policies turn deny by default on; policies of tiers do not."""
    enforced = [policy for policy in policies if PLACEMENTS[policy.level] == layer.at and not policy.audit]
    return modes_of_layer(layer, [policy.ref for policy in enforced if policy.tier is Tier.NAMESPACED])


WORDS: Words[Policy] = Words(
    action=lambda policy: str(policy.action),
    level=lambda policy: str(policy.level),
    rules=_rules,
    why_idle=_why_idle,
    tier=_tier,
    modes=_modes,
    levels=tuple(PLACEMENTS.values()),
)
