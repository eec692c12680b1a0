"""Assemble the AuthPolicies on a Gateway or a route to its layer.

    [Observe(audit), Deny(selected, and without a scheme), AskAll]

The rules select the requests for authorization. Other requests pass. Of the policies on one target, the oldest is in
force. Of its schemes, the one with the closest host answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eastgate.cluster.targets import GatewayNamed
from eastgate.dialects.base import Scene
from eastgate.dialects.kuadrant import hosts
from eastgate.dialects.kuadrant.proposal.model import HttpRule, Policy
from eastgate.dialects.kuadrant.proposal.provenance import AT_GATEWAY, AT_ROUTE, WITHOUT_SCHEME, StageName
from eastgate.ir import (
    ALWAYS,
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
    Or,
    Origin,
    Predicate,
    Refusal,
    Rule,
    Stage,
    all_of,
    any_of,
)
from eastgate.ir.attributes import METHOD
from eastgate.ir.paths import any_path


def in_force(policies: Iterable[Policy]) -> Policy | None:
    """Return the policy in force of those on one target: the oldest, then the first by name.

    Audited policies do not count.
    """
    enforced = [policy for policy in policies if not policy.audit]
    return min(
        enforced, key=lambda policy: (policy.created is None, policy.created or "", policy.ref.name), default=None
    )


def layers(attached: Sequence[Attachment[Policy]], scene: Scene) -> list[Layer]:
    """Return the layer of a Gateway or of a route."""
    policies = sorted((attachment.policy for attachment in attached), key=lambda policy: policy.ref)
    placement = AT_GATEWAY if isinstance(policies[0].target, GatewayNamed) else AT_ROUTE
    stages: list[Stage] = []
    if audited := [rule for policy in policies if policy.audit for rule in _selecting(policy)]:
        stages.append(Observe(StageName.AUDIT, tuple(audited), ("ask",) * len(audited)))
    chosen = in_force(policies)
    if chosen is not None:
        stages += _stages(chosen, scene)
    return [Layer(placement, Chain(tuple(stages)))]


def _selecting(policy: Policy) -> list[Rule]:
    """Return the rules of a policy. If it has none, return one rule that selects all traffic of the target."""
    rules = [Rule(_selected(rule), Origin(policy.ref, index, rule.span)) for index, rule in enumerate(policy.rules)]
    return rules or [Rule(ALWAYS, Origin(policy.ref, 0, policy.span))]


def _stages(policy: Policy, scene: Scene) -> list[Stage]:
    """Build the stages for requests that ANY rule selects: refuse hosts without a scheme, ask the closest scheme."""
    selected = any_of([rule.when for rule in _selecting(policy)])
    every_host = [host for scheme in policy.schemes for host in scheme.hosts]
    stages: list[Stage] = []
    if hosts.ANY not in every_host:
        uncovered = Not(Or(tuple(hosts.matches(host) for host in every_host)))
        nowhere = Origin(policy.ref, 0, policy.span, derived=WITHOUT_SCHEME)
        stages.append(Deny(StageName.NO_SCHEME, (Rule(all_of([selected, uncovered]), nowhere),), Refusal.NOT_FOUND))
    from eastgate.dialects.kuadrant.authorino.authorizer import SchemeAuthorizer, services_of  # only with an AuthPolicy

    services = services_of(scene)
    asks = [
        Ask(
            Rule(all_of([selected, hosts.nearest(scheme.hosts, every_host)]), origin),
            str(origin),
            SchemeAuthorizer(scheme, services),
        )
        for scheme, origin in zip(policy.schemes, policy.origins, strict=True)
    ]
    if asks:
        stages.append(AskAll(StageName.AUTH, tuple(asks)))
    return stages


def _selected(rule: HttpRule) -> Predicate:
    """Match ALL fields of a rule. Without hosts it covers those of the target, and no other requests arrive."""
    parts: list[Predicate] = []
    if rule.hosts is not None:
        parts.append(hosts.selects(rule.hosts))
    if rule.methods is not None and "*" not in rule.methods:
        parts.append(Is(METHOD, OneOf(frozenset(rule.methods))))
    if rule.paths is not None and "*" not in rule.paths:
        parts.append(any_path(rule.paths))
    return all_of(parts)
