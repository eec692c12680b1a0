"""The conditions that a policy would show: `Accepted`, and `ResolvedRefs` where it names an authorizer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster import World
from eastgate.cluster.targets import BackendNamed, GatewayNamed, Target
from eastgate.dialects.accesspolicy.model import Policy
from eastgate.dialects.base import Condition
from eastgate.settings import Settings


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
        message = f"no ReferenceGrant lets it name {', '.join(refused)}: what they would be asked about is denied"
        yield Condition("ResolvedRefs", "False", "RefNotPermitted", message)
    else:
        yield Condition("ResolvedRefs", "True", "ResolvedRefs", "it may name its authorizers")
