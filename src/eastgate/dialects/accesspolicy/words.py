"""Descriptions of AccessPolicies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster import World
from eastgate.cluster.targets import BackendNamed, GatewayNamed, Target
from eastgate.dialects.accesspolicy.model import Policy
from eastgate.dialects.base import Condition
from eastgate.dialects.words import NO_RULES, NOTHING_SELECTED, DescribedRule, Words, describe_rule, describe_rules
from eastgate.settings import Settings

# The conditions of a policy: `Accepted`, and `ResolvedRefs` if it names an authorizer.


def conditions(policy: Policy, _policies: Sequence[Policy], _settings: Settings, world: World) -> list[Condition]:
    """Return whether its targets exist, and whether it may name its authorizers."""
    missing = [str(target) for target in policy.targets if not _exists(target, world)]
    if len(missing) == len(policy.targets):
        accepted = Condition("Accepted", "False", "TargetNotFound", f"no manifest declares {', '.join(missing)}")
    else:
        message = "it is in audit mode: it is reported and decides nothing" if policy.audit else "it is in force"
        also = f"; no manifest declares {', '.join(missing)}" if missing else ""
        accepted = Condition("Accepted", "True", "Accepted", message + also)
    return [accepted, *_references(policy, world)]


def _exists(target: Target, world: World) -> bool:
    match target:
        case GatewayNamed(namespace, name):
            return f"{namespace}/{name}" in world.gateways
        case BackendNamed(namespace, name):
            return f"{namespace}/{name}" in world.backends
        case _:
            return True


def _references(policy: Policy, world: World) -> Iterator[Condition]:
    authorizers = list(dict.fromkeys(authorizer for _, authorizer in policy.asks))
    if not authorizers:
        return
    refused = [str(authorizer) for authorizer in authorizers if not world.granted(*authorizer.reference)]
    if refused:
        message = f"no ReferenceGrant allows the reference to {', '.join(refused)}: their requests are denied"
        yield Condition("ResolvedRefs", "False", "RefNotPermitted", message)
    else:
        yield Condition("ResolvedRefs", "True", "ResolvedRefs", "it may name its authorizers")


def _level(policy: Policy) -> str:
    return "gateway" if isinstance(policy.targets[0], GatewayNamed) else "backend"


def _rules(policy: Policy) -> list[DescribedRule]:
    asks = [describe_rule(f"ASK {authorizer}", rule) for rule, authorizer in policy.asks]
    return [*asks, *describe_rules(str(policy.action), (*policy.denies, *policy.allows))]


def _why_idle(_policy: Policy, problem: str | None, selects: bool) -> str:
    return NO_RULES if selects else problem or NOTHING_SELECTED


WORDS: Words[Policy] = Words(
    action=lambda policy: str(policy.action),
    level=_level,
    rules=_rules,
    why_idle=_why_idle,
)
