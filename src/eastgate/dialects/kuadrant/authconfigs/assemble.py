"""Assemble the AuthConfigs for a host to its layer.

    [Deny(another AuthConfig is asked about), AskAll]

The AuthConfig that the host is linked to decides. An AuthConfig in audit mode keeps its hosts, and allows all requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.dialects.base import Scene
from eastgate.dialects.kuadrant.authconfigs.linking import link_hosts
from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.dialects.kuadrant.authconfigs.provenance import AT_HOST, LinkedElsewhere, LinkedHost, StageName
from eastgate.ir import (
    ALWAYS,
    AllowAny,
    And,
    Ask,
    AskAll,
    Attachment,
    Chain,
    Deny,
    Is,
    Layer,
    Not,
    Observe,
    OneOf,
    Origin,
    Present,
    Refusal,
    Rule,
    Stage,
    Unroutable,
)
from eastgate.ir.attributes import HOST_POLICY


def layers(attached: Sequence[Attachment[Policy]], scene: Scene) -> list[Layer]:
    """Return the layer of a host."""
    host = attached[0].host
    policies = {attachment.policy.ref: attachment.policy for attachment in attached}
    links = link_hosts(policies.values(), scene.settings)
    linked = links.find(host) if host is not None else None
    if linked is None:  # no AuthConfig has the host
        return [Layer(AT_HOST, Chain((AllowAny(Unroutable.NO_HOST_POLICY, (), Refusal.NOT_FOUND),)))]
    chosen = links.by_host[linked]
    others = tuple(ref for ref in policies if ref != chosen.ref)
    stages: list[Stage] = [_linked(chosen, linked)]
    if chosen.audit:
        stages.append(Observe(StageName.AUDIT, (Rule(ALWAYS, chosen.origin),), ("ask",)))
    else:
        stages.append(AskAll(StageName.AUTH, (_ask(chosen, scene),)))
    return [Layer(AT_HOST, Chain(tuple(stages), scope=LinkedHost(linked, chosen.ref, others)))]


def _linked(chosen: Policy, host: str) -> Deny:
    """Refuse requests of questions about an AuthConfig that does not have the host."""
    another = And((Is(HOST_POLICY, Present()), Not(Is(HOST_POLICY, OneOf(frozenset({chosen.key}))))))
    span = chosen.host_spans[chosen.hosts.index(host)]
    origin = Origin(chosen.ref, 0, span, derived=LinkedElsewhere(host))
    return Deny(StageName.LINKED, (Rule(another, origin),), Refusal.NOT_FOUND)


def _ask(policy: Policy, scene: Scene) -> Ask:
    from eastgate.dialects.kuadrant.authorino.authorizer import SchemeAuthorizer, services_of  # only with an AuthConfig

    return Ask(Rule(ALWAYS, policy.origin), str(policy.ref), SchemeAuthorizer(policy.scheme, services_of(scene)))
