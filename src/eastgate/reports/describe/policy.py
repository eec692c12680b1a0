"""`describe policy`: what it really affects, its rules in words, and the status that it would show."""

from __future__ import annotations

from eastgate import dialects
from eastgate.api.trace_json import origin_to_json
from eastgate.dialects import Policy
from eastgate.dialects.base import Condition
from eastgate.dialects.words import NO_ACTION
from eastgate.reports.cluster import Cluster
from eastgate.reports.columns import columns
from eastgate.reports.describe.findings import findings
from eastgate.reports.describe.model import Description, Field, bounded, some, value
from eastgate.reports.describe.policies import action_of, level_of, rules_in_words, targets_of, tier_of, why_idle
from eastgate.reports.describe.tables import where
from eastgate.reports.effective import place_text

__all__ = ["conditions_of", "describe_policy"]

_MOST_RULES = 50


def describe_policy(cluster: Cluster, policy: Policy) -> Description:
    """Everything about one policy."""
    ref, tier = policy.ref, tier_of(policy)
    targets = targets_of(policy, cluster.document(ref))
    return Description(
        (
            value("kind", "Kind", ref.kind),
            value("name", "Name", ref.name),
            value("namespace", "Namespace", ref.namespace),
            value("group", "Group", ref.group),
            value("action", "Action", action_of(policy), "" if action_of(policy) == NO_ACTION else None),
            value("level", "Level", level_of(policy)),
            value("tier", "Tier", tier.name if tier else None),
            value("priority", "Priority", tier.priority if tier else None),
            value("audit", "Audit", policy.audit, "yes: it is reported and decides nothing" if policy.audit else ""),
            some(
                "targets",
                "Targets",
                [{"kind": one.kind, "expression": one.expression} for one in targets],
                [f"{one.kind} {one.expression}" for one in targets],
            ),
            _rules(cluster, policy),
            _affects(cluster, policy),
            _references(cluster, policy),
            _status(cluster, policy),
            findings(cluster, {str(ref)}),
            value("source", "Source", where(policy.span), place_text(policy.span)),
        )
    )


def _rules(cluster: Cluster, policy: Policy) -> Field:
    rules = rules_in_words(policy, cluster.authority.settings)
    data = [
        {
            "does": one.does,
            "asks": one.asks,
            "rule": origin_to_json(one.origin)["rule"] if one.origin else None,
            **where(one.span),
        }
        for one in rules
    ]
    rows = [[[str(number)], [one.does], [one.asks], [place_text(one.span)]] for number, one in enumerate(rules)]
    more = [f"... and {len(rows) - _MOST_RULES} more"] if len(rows) > _MOST_RULES else []
    return some("rules", "Rules", data, [*columns(None, rows[:_MOST_RULES]), *more], none=_no_rules(policy))


def _no_rules(policy: Policy) -> str:
    return "<none>: it allows nothing" if action_of(policy) == "ALLOW" else "<none>"


def _affects(cluster: Cluster, policy: Policy) -> Field:
    affected = cluster.affected(policy)
    if affected:
        audited = " (observed only)" if policy.audit else ""
        points = [str(point) for point in affected]
        what = _plural(len(points), "workload") if isinstance(affected[0], str) else f"{len(points)}"
        lines = [f"{what}{audited}", *(f"  {point}" for point in bounded(points))]
        return some("affects", "Affects", {"count": len(points), "points": points, "why": None}, lines)
    why = _why_not(cluster, policy)
    return value("affects", "Affects", {"count": 0, "points": [], "why": why}, f"nothing: {why}")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _why_not(cluster: Cluster, policy: Policy) -> str:
    """Return why a policy that is read and right changes nothing."""
    problem = next((one.message for one in conditions_of(cluster, policy) if one.status == "False"), None)
    return why_idle(policy, problem, selects=bool(cluster.points(policy)))


def _references(cluster: Cluster, policy: Policy) -> Field:
    refers = [str(ref) for ref in policy.references]
    referred = [str(one.ref) for one in cluster.referring(policy.ref)]
    lines = [*(f"to {one}" for one in refers), *(f"from {one}" for one in referred)]
    data = {"to": refers, "from": referred}
    return some("references", "References", data, lines) if lines else Field("references", "References", data, ())


def conditions_of(cluster: Cluster, policy: Policy) -> list[Condition]:
    """The conditions that a policy would show."""
    authority = cluster.authority
    return dialects.conditions(policy, cluster.beside(policy), authority.settings, authority.world)


def _status(cluster: Cluster, policy: Policy) -> Field:
    found = conditions_of(cluster, policy)
    rows = [[[one.type], [one.status], [one.reason], [one.message]] for one in found]
    data = {"conditions": [dict(one.to_json()) for one in found]}
    return some("status", "Status", data, columns(["TYPE", "STATUS", "REASON", "MESSAGE"], rows) if rows else [])
