"""From the policies that target a Gateway or a Backend to its layer.

Order among policies does not matter: all ExternalAuth before all DENY before all InlineTools.

    [Observe(audit), Deny(broken authorizers), AskAll, Deny, AllowAny]

`AllowAny` is there once any allowing policy is; a level with only ExternalAuth or DENY lets the rest through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eastgate.dialects.accesspolicy.model import Action, Authorizer, Policy
from eastgate.dialects.accesspolicy.provenance import AT_BACKEND, AT_GATEWAY, UnlistedCallerReading
from eastgate.policy import (
    AllowAny,
    Ask,
    AskAll,
    Attachment,
    Case,
    Chain,
    Deny,
    Layer,
    Observe,
    Or,
    Refusal,
    Stage,
)
from eastgate.settings import Settings, UnlistedCaller
from eastgate.world.targets import GatewayNamed

__all__ = ["layers"]

Granted = Callable[[Authorizer], bool]


def layers(attached: Sequence[Attachment[Policy]], settings: Settings, granted: Granted) -> list[Layer]:
    """The layer of a Gateway or a Backend that these policies target."""
    policies = sorted({one.policy for one in attached}, key=lambda policy: policy.ref)
    if not policies:
        return []
    at_gateway = any(isinstance(target, GatewayNamed) for target in policies[0].targets)
    placement = AT_GATEWAY if at_gateway else AT_BACKEND
    audited = [policy for policy in policies if policy.audit]
    enforced = [policy for policy in policies if not policy.audit]
    before = [*_observe(audited), *_ask(enforced, granted), *_deny(enforced)]
    allowing = [policy for policy in enforced if policy.action is Action.ALLOW]
    if not allowing:
        return [Layer(placement, Chain(tuple(before)))]
    rules = tuple(rule for policy in allowing for rule in policy.allows)
    reading = UnlistedCallerReading(settings.unlisted_caller)
    listed = Chain((*before, AllowAny("allow", rules, Refusal.FORBIDDEN)), (reading,))
    if settings.unlisted_caller is UnlistedCaller.DENY:
        return [Layer(placement, listed)]
    callers = Or(tuple(caller for policy in allowing for caller in policy.callers))
    return [Layer(placement, Chain(tuple(before), (reading,)), (Case(callers, listed),))]


def _observe(audited: list[Policy]) -> list[Stage]:
    rules = [(rule, policy.action) for policy in audited for rule in policy.rules]
    return [Observe("audit", tuple(r for r, _ in rules), tuple(str(action) for _, action in rules))] if rules else []


def _ask(policies: list[Policy], granted: Granted) -> list[Stage]:
    """An authorizer that cannot be reached denies what it would have been asked about."""
    asks = [(rule, authorizer) for policy in policies for rule, authorizer in policy.asks]
    broken = tuple(rule for rule, authorizer in asks if not granted(authorizer))
    sound = tuple(Ask(rule, str(authorizer)) for rule, authorizer in asks if granted(authorizer))
    stages: list[Stage] = [Deny("external-auth-not-granted", broken, Refusal.FORBIDDEN)] if broken else []
    return [*stages, AskAll("external-auth", sound, Refusal.FORBIDDEN)] if sound else stages


def _deny(policies: list[Policy]) -> list[Stage]:
    rules = tuple(rule for policy in policies for rule in policy.denies)
    return [Deny("deny", rules, Refusal.FORBIDDEN)] if rules else []
