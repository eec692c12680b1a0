"""Assemble the policies that target a Gateway or a Backend to its layer.

The order of policies does not matter: ExternalAuth precedes DENY, and DENY precedes InlineTools.

    [Observe(audit), Deny(broken authorizers), AskAll, Deny, AllowAny]

`AllowAny` exists only if some policy allows. A level with only ExternalAuth or DENY allows all other requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eastgate.cluster.targets import GatewayNamed
from eastgate.dialects.accesspolicy.model import Action, AuthorizerReference, Policy
from eastgate.dialects.accesspolicy.provenance import AT_BACKEND, AT_GATEWAY, StageName, UnlistedCallerReading
from eastgate.dialects.accesspolicy.settings import AccessSettings, UnlistedCaller
from eastgate.ir import (
    AllowAny,
    Ask,
    AskAll,
    Attachment,
    AuthorizerName,
    Chain,
    Deny,
    Layer,
    Observe,
    Or,
    Refusal,
    SelectorCase,
    Stage,
)
from eastgate.settings import Settings

Granted = Callable[[AuthorizerReference], bool]


def layers(attached: Sequence[Attachment[Policy]], settings: Settings, granted: Granted) -> list[Layer]:
    """Return the layer of a Gateway or a Backend that these policies target."""
    policies = sorted({attachment.policy for attachment in attached}, key=lambda policy: policy.ref)
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
    unlisted = settings.section(AccessSettings).unlisted_caller
    reading = UnlistedCallerReading(unlisted)
    listed = Chain((*before, AllowAny(StageName.ALLOW, rules, Refusal.FORBIDDEN)), (reading,))
    if unlisted is UnlistedCaller.DENY:
        return [Layer(placement, listed)]
    callers = Or(tuple(caller for policy in allowing for caller in policy.callers))
    return [Layer(placement, Chain(tuple(before), (reading,)), (SelectorCase(callers, listed),))]


def _observe(audited: list[Policy]) -> list[Stage]:
    rules = [(rule, str(policy.action)) for policy in audited for rule in policy.rules]
    if not rules:
        return []
    return [Observe(StageName.AUDIT, tuple(rule for rule, _ in rules), tuple(action for _, action in rules))]


def _ask(policies: list[Policy], granted: Granted) -> list[Stage]:
    """Ask the authorizers. If a ReferenceGrant is missing for one, deny the requests that it would decide."""
    asks = [(rule, authorizer) for policy in policies for rule, authorizer in policy.asks]
    broken = tuple(rule for rule, authorizer in asks if not granted(authorizer))
    sound = tuple(Ask(rule, AuthorizerName(authorizer.external)) for rule, authorizer in asks if granted(authorizer))
    stages: list[Stage] = [Deny(StageName.NOT_GRANTED, broken, Refusal.FORBIDDEN)] if broken else []
    return [*stages, AskAll(StageName.EXTERNAL_AUTH, sound, Refusal.FORBIDDEN)] if sound else stages


def _deny(policies: list[Policy]) -> list[Stage]:
    rules = tuple(rule for policy in policies for rule in policy.denies)
    return [Deny(StageName.DENY, rules, Refusal.FORBIDDEN)] if rules else []
