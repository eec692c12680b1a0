"""Assemble the AuthPolicies that govern a rule of a route to its layer: one effective policy, with one scheme to ask.

[Observe(audit), AskAll]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.dialects.base import Scene
from eastgate.dialects.kuadrant.policies.effective import Effective, fold
from eastgate.dialects.kuadrant.policies.model import Policy
from eastgate.dialects.kuadrant.policies.provenance import AT_RULE, EffectiveRules, EffectiveScope, StageName
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.ir import (
    ALWAYS,
    Ask,
    AskAll,
    Attachment,
    Chain,
    EffectivePolicy,
    Layer,
    Observe,
    Origin,
    Rule,
    RuleInForce,
    ShadowedRule,
    Stage,
)


def layers(attached: Sequence[Attachment[Policy]], scene: Scene) -> list[Layer]:
    """Return the layer of a rule of a route. If several policies may be the effective one, ALL of them are asked."""
    counting = [attachment for attachment in attached if not attachment.policy.deleted]
    policies = [attachment.policy for attachment in counting]
    stages: list[Stage] = []
    if audited := [policy for policy in policies if policy.audit]:
        observed = tuple(Rule(ALWAYS, Origin(policy.ref, 0, policy.span)) for policy in audited)
        stages.append(Observe(StageName.AUDIT, observed, ("ask",) * len(observed)))
    possible = [effective for effective in map(fold, _possible(counting)) if effective.rules]
    if not possible:
        return [Layer(AT_RULE, Chain(tuple(stages)))]
    stages.append(AskAll(StageName.AUTH, tuple(_ask(effective, scene) for effective in possible)))
    effective = possible[0]
    refs = tuple(policy.ref for policy in effective.sources)
    scope = EffectiveScope(refs, tuple(policy.ref for policy in effective.overridden))
    return [Layer(AT_RULE, Chain(tuple(stages), scope=scope, effective=_described(effective)))]


def _possible(attached: Sequence[Attachment[Policy]]) -> Iterator[list[Policy]]:
    """Yield the policies in force for the rule, for each listener through which requests may arrive."""
    in_force = [attachment for attachment in attached if not attachment.policy.audit]
    certain = [attachment.policy for attachment in in_force if not attachment.perhaps]
    yield certain
    by_target: dict[object, list[Policy]] = {}
    for attachment in in_force:
        if attachment.perhaps:
            by_target.setdefault(attachment.policy.target, []).append(attachment.policy)
    yield from ([*certain, *of_listener] for of_listener in by_target.values())


def _described(effective: Effective) -> EffectivePolicy:
    """Return the effective policy as data for reports. Its sections are in the order of evaluation."""
    from eastgate.dialects.kuadrant.schemes import SchemeSection  # only if there is an AuthPolicy

    order = [str(section) for section in (SchemeSection.PATTERNS, SchemeSection.CONDITIONS, *SchemeSection)]
    in_force = sorted(effective.rules.items(), key=lambda rule: order.index(rule[0].section))
    shadowed = (
        ShadowedRule(str(rule.key), rule.policy.origin(rule.key), rule.why, tuple(policy.ref for policy in rule.by))
        for rule in effective.shadowed
    )
    return EffectivePolicy(
        tuple(RuleInForce(str(key), policy.origin(key)) for key, policy in in_force), tuple(shadowed)
    )


def _ask(effective: Effective, scene: Scene) -> Ask:
    from eastgate.dialects.kuadrant.authorino.authorizer import services_of  # only with an AuthPolicy
    from eastgate.dialects.kuadrant.policies.authorizer import EffectiveAuthorizer
    from eastgate.dialects.kuadrant.schemes import scheme_from

    settings = scene.settings.section(KuadrantSettings)
    first = effective.sources[0]
    scheme = scheme_from(
        effective.nodes, settings.authorino_namespace, span=first.span, authorino_compat=settings.authorino_compat
    )
    origin = Origin(first.ref, 0, first.span, derived=EffectiveRules(tuple(policy.ref for policy in effective.sources)))
    name = " over ".join(str(policy.ref) for policy in effective.policies)
    origins = {key: policy.origin(key) for key, policy in effective.rules.items()}
    return Ask(Rule(ALWAYS, origin), name, EffectiveAuthorizer(scheme, services_of(scene), origins))
