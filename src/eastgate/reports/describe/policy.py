"""`describe policy`: its effects, its rules as text, and its status conditions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from eastgate import dialects
from eastgate.authority.trace_json import effective_to_json, origin_to_json
from eastgate.cluster.points import RuleNamed
from eastgate.dialects import Policy
from eastgate.dialects.base import Condition
from eastgate.dialects.words import NO_ACTION
from eastgate.ir import EffectivePolicy
from eastgate.reports.cluster import Cluster
from eastgate.reports.columns import Line, Lines, columns, indent_lines
from eastgate.reports.describe.model import DescribedField, Description, list_field, shorten, value_field
from eastgate.reports.describe.policies import (
    action_of,
    findings_field,
    level_of,
    rules_in_words,
    targets_of,
    tier_of,
    why_idle,
)
from eastgate.reports.describe.tables import span_data
from eastgate.reports.effective import span_text
from eastgate.reports.effective.policies import IN_FORCE, effective_policy_lines, shadowing_text

# The effective policies of rules of routes: the rules in force at each, where they are written, and the rules that
# are not in force. Only policies that are merged into one have them. For others, the effective table shows the callers.


_NO_POLICY = "no policy: no rule checks requests here"
_MAX_ROWS = 40


def effective_policies_field(cluster: Cluster, rules: Iterable[RuleNamed]) -> DescribedField:
    """List the effective policy of each rule. Without any policy, the field has data only."""
    data: list[dict[str, object]] = []
    lines: list[Line] = []
    for rule in rules:
        effective = next(_effective(cluster, rule), None)
        policy = effective_to_json(effective) if effective is not None else None
        data.append({**_rule_to_json(rule), "effective": policy})
        lines.append(f"{rule}:" if effective is not None else f"{rule}: {_NO_POLICY}")
        lines += indent_lines(effective_policy_lines(effective) if effective is not None else (), "  ")
    if all(entry["effective"] is None for entry in data):
        return DescribedField("effectivePolicies", "Effective policies", [], ())
    return list_field("effectivePolicies", "Effective policies", data, lines)


def rules_in_force_field(cluster: Cluster, policy: Policy) -> DescribedField:
    """List the places where each rule of a policy is in force, and the rules that shadow it elsewhere."""
    rows: list[list[Lines]] = []
    data: list[dict[str, object]] = []
    for rule in (point for point in cluster.points(policy) if isinstance(point, RuleNamed)):
        for effective in _effective(cluster, rule):
            statuses = list(_statuses(effective, policy))
            for status in dict.fromkeys(status for _, status, _ in statuses):
                keys = [key for key, of_key, _ in statuses if of_key == status]
                rows.append([[str(rule)], [status], [", ".join(keys)]])
            data += [
                {"key": key, **_rule_to_json(rule), "inForce": by is None, "by": list(by or ())}
                for key, _, by in statuses
            ]
    if not rows:
        return DescribedField("inForce", "In force", [], ())
    more = [f"... and {len(rows) - _MAX_ROWS} more"] if len(rows) > _MAX_ROWS else []
    return list_field("inForce", "In force", data, [*columns(("WHERE", "STATUS", "RULES"), rows[:_MAX_ROWS]), *more])


def _effective(cluster: Cluster, rule: RuleNamed) -> Iterator[EffectivePolicy]:
    for layer in cluster.layers(rule):
        for chain in layer.chains:
            if chain.effective is not None:
                yield chain.effective


def _statuses(effective: EffectivePolicy, policy: Policy) -> Iterator[tuple[str, str, tuple[str, ...] | None]]:
    """Yield the rules of one policy, each with its status as text and the policies that shadow it."""
    for rule in effective.rules:
        if rule.origin.policy == policy.ref:
            yield rule.key, IN_FORCE, None
    for shadowed in effective.shadowed:
        if shadowed.origin.policy == policy.ref:
            yield shadowed.key, shadowing_text(shadowed), tuple(map(str, shadowed.by))


def _rule_to_json(rule: RuleNamed) -> dict[str, object]:
    gateway = rule.gateway
    return {
        "gateway": f"{gateway.namespace}/{gateway.name}" if gateway is not None else None,
        "listener": rule.listener,
        "route": f"{rule.route.kind}/{rule.route.namespace}/{rule.route.name}",
        "rule": rule.rule,
        "name": rule.rule_name,
    }


_MAX_RULES = 50


def describe_policy(cluster: Cluster, policy: Policy) -> Description:
    ref, tier = policy.ref, tier_of(policy)
    targets = targets_of(policy, cluster.document(ref))
    return Description(
        (
            value_field("kind", "Kind", ref.kind),
            value_field("name", "Name", ref.name),
            value_field("namespace", "Namespace", ref.namespace),
            value_field("group", "Group", ref.group),
            value_field("action", "Action", action_of(policy), "" if action_of(policy) == NO_ACTION else None),
            value_field("level", "Level", level_of(policy)),
            value_field("tier", "Tier", tier.name if tier else None),
            value_field("priority", "Priority", tier.priority if tier else None),
            value_field(
                "audit", "Audit", policy.audit, "yes: it is reported and decides nothing" if policy.audit else ""
            ),
            list_field(
                "targets",
                "Targets",
                [{"kind": target.kind, "expression": target.expression} for target in targets],
                [f"{target.kind} {target.expression}" for target in targets],
            ),
            _rules(cluster, policy),
            _affects(cluster, policy),
            _not_enforced(cluster, policy),
            rules_in_force_field(cluster, policy),
            _references(cluster, policy),
            _status(cluster, policy),
            findings_field(cluster, {str(ref)}),
            value_field("source", "Source", span_data(policy.span), span_text(policy.span)),
        )
    )


def _rules(cluster: Cluster, policy: Policy) -> DescribedField:
    rules = rules_in_words(policy, cluster.authority.settings)
    data = [
        {
            "does": rule.does,
            "asks": rule.asks,
            "rule": origin_to_json(rule.origin)["rule"] if rule.origin else None,
            **span_data(rule.span),
        }
        for rule in rules
    ]
    rows = [[[str(number)], [rule.does], [rule.asks], [span_text(rule.span)]] for number, rule in enumerate(rules)]
    more = [f"... and {len(rows) - _MAX_RULES} more"] if len(rows) > _MAX_RULES else []
    return list_field("rules", "Rules", data, [*columns(None, rows[:_MAX_RULES]), *more], none=_no_rules(policy))


def _no_rules(policy: Policy) -> str:
    return "<none>: it allows nothing" if action_of(policy) == "ALLOW" else "<none>"


def _affects(cluster: Cluster, policy: Policy) -> DescribedField:
    affected = cluster.affected(policy)
    if affected:
        audited = " (observed only)" if policy.audit else ""
        points = [str(point) for point in affected]
        what = _plural(len(points), "workload") if isinstance(affected[0], str) else f"{len(points)}"
        lines = [f"{what}{audited}", *(f"  {point}" for point in shorten(points))]
        return list_field("affects", "Affects", {"count": len(points), "points": points, "why": None}, lines)
    why = _why_not(cluster, policy)
    return value_field("affects", "Affects", {"count": 0, "points": [], "why": why}, f"nothing: {why}")


def _not_enforced(cluster: Cluster, policy: Policy) -> DescribedField:
    """List the points where no enforcer is certain to apply a policy."""
    unenforced = cluster.unenforced(policy)
    data = [{**each.to_json(), "policies": [str(policy.ref)]} for each in unenforced.values()]
    lines = [f"{each.at}: {'' if each.certain else 'not certain: '}{each.why}" for each in unenforced.values()]
    return DescribedField("notEnforced", "Not Enforced", data, tuple(shorten(lines)), block=bool(lines))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _why_not(cluster: Cluster, policy: Policy) -> str:
    """Return the reason why a valid policy has no effect."""
    problem = next(
        (condition.message for condition in conditions_of(cluster, policy) if condition.status == "False"), None
    )
    return why_idle(policy, problem, selects=bool(cluster.points(policy)))


def _references(cluster: Cluster, policy: Policy) -> DescribedField:
    refers = [str(ref) for ref in policy.references]
    referred = [str(referrer.ref) for referrer in cluster.referring(policy.ref)]
    lines = [*(f"to {ref}" for ref in refers), *(f"from {ref}" for ref in referred)]
    data = {"to": refers, "from": referred}
    return (
        list_field("references", "References", data, lines)
        if lines
        else DescribedField("references", "References", data, ())
    )


def conditions_of(cluster: Cluster, policy: Policy) -> list[Condition]:
    """Return the conditions of the status of a policy."""
    authority = cluster.authority
    return dialects.conditions(policy, cluster.beside(policy), authority.settings, authority.world)


def _status(cluster: Cluster, policy: Policy) -> DescribedField:
    conditions = conditions_of(cluster, policy)
    rows = [[[condition.type], [condition.status], [condition.reason], [condition.message]] for condition in conditions]
    data: dict[str, object] = {"conditions": [dict(condition.to_json()) for condition in conditions]}
    lines = columns(["TYPE", "STATUS", "REASON", "MESSAGE"], rows) if rows else []
    authority = cluster.authority
    summarize = dialects.dialect_of(policy).summarize
    if summary := summarize(policy, cluster.beside(policy), authority.settings, authority.world):
        data["summary"] = dict(summary)
        lines = [*lines, *(f"{name}: {json.dumps(value)}" for name, value in summary.items())]
    return list_field("status", "Status", data, lines)
