"""`describe policy`: what it really affects, its rules in words, and the status that it would show."""

from __future__ import annotations

import json

from eastgate import dialects
from eastgate.authority.trace_json import origin_to_json
from eastgate.dialects import Policy
from eastgate.dialects.base import Condition
from eastgate.dialects.words import NO_ACTION
from eastgate.reports.cluster import Cluster
from eastgate.reports.columns import columns
from eastgate.reports.describe.effective_policies import rules_in_force_field
from eastgate.reports.describe.findings import findings_field
from eastgate.reports.describe.model import DescribedField, Description, list_field, shorten, value_field
from eastgate.reports.describe.policies import action_of, level_of, rules_in_words, targets_of, tier_of, why_idle
from eastgate.reports.describe.tables import span_data
from eastgate.reports.effective import span_text

_MOST_RULES = 50


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
    more = [f"... and {len(rows) - _MOST_RULES} more"] if len(rows) > _MOST_RULES else []
    return list_field("rules", "Rules", data, [*columns(None, rows[:_MOST_RULES]), *more], none=_no_rules(policy))


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
    """List the points where nothing enforces a policy, or nothing is certain to."""
    unenforced = cluster.unenforced(policy)
    data = [{**each.to_json(), "policies": [str(policy.ref)]} for each in unenforced.values()]
    lines = [f"{each.at}: {'' if each.certain else 'not certain: '}{each.why}" for each in unenforced.values()]
    return DescribedField("notEnforced", "Not Enforced", data, tuple(shorten(lines)), block=bool(lines))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _why_not(cluster: Cluster, policy: Policy) -> str:
    """Return why a policy that is read and right changes nothing."""
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
    """Return the conditions that the status of a policy would show."""
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
