"""The effective policies of rules of routes: what is in force at each of them, where it is written, and what is not.

Only policies that are folded to one have them; for others the effective table says who may come in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eastgate.authority.trace_json import effective_to_json
from eastgate.cluster.points import RuleNamed
from eastgate.dialects import Policy
from eastgate.ir import EffectivePolicy
from eastgate.reports.cluster import Cluster
from eastgate.reports.columns import Line, Lines, columns, indent_lines
from eastgate.reports.describe.model import DescribedField, list_field
from eastgate.reports.effective.policies import IN_FORCE, effective_policy_lines, shadowing_text

_NO_POLICY = "no policy: requests are not asked about"
_MOST = 40


def effective_policies_field(cluster: Cluster, rules: Iterable[RuleNamed]) -> DescribedField:
    """List the effective policy of each rule; without any policy, it is data only."""
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
    """List where each rule of a policy is in force, and what shadows it elsewhere."""
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
    more = [f"... and {len(rows) - _MOST} more"] if len(rows) > _MOST else []
    return list_field("inForce", "In force", data, [*columns(("WHERE", "STATUS", "RULES"), rows[:_MOST]), *more])


def _effective(cluster: Cluster, rule: RuleNamed) -> Iterator[EffectivePolicy]:
    for layer in cluster.layers(rule):
        for chain in layer.chains:
            if chain.effective is not None:
                yield chain.effective


def _statuses(effective: EffectivePolicy, policy: Policy) -> Iterator[tuple[str, str, tuple[str, ...] | None]]:
    """Yield the rules of one policy, each with its status in words, and the policies that shadow it, if any do."""
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
