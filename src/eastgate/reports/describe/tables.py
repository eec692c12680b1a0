"""Parts that several descriptions share: tables of policies, and the effective table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import Workload
from eastgate.cluster.points import NamedPoint, Point, RuleNamed
from eastgate.dialects import Policy
from eastgate.ir import PolicyRef
from eastgate.reach.table import EffectiveTable
from eastgate.reports.cluster import Cluster
from eastgate.reports.columns import Line, columns, indent_lines
from eastgate.reports.describe.model import DescribedField, list_field
from eastgate.reports.describe.modes import isolation_text
from eastgate.reports.describe.policies import (
    action_of,
    does_text,
    is_indirect,
    level_of,
    matched_terms,
    targets_of,
    tier_of,
)
from eastgate.reports.effective import span_text, table_text, table_to_json

# The table of the draft, with the same spacing: see "Enhanced Discoverability" in GEP-3779.
_HEADERS = ("Type", "Name", "Target Kind", "Target Name/Expression")
_RULE = ("----", "----", "-----------", "-----------")
_WIDTHS = (23, 37, 14, 0)


def span_data(span: Span | None) -> dict[str, object]:
    """Return the file and line of a span, as plain data."""
    return {"file": span.file if span else None, "line": span.line if span else None}


def labels_text(labels: Mapping[str, str]) -> list[str]:
    """Render labels as kubectl does."""
    return [f"{key}={value}" for key, value in sorted(labels.items())]


def inherited_field(cluster: Cluster, policies: Sequence[Policy], workload: Workload | None = None) -> DescribedField:
    """Make the draft's `InheritedPolicies` table.

    For a policy with several targets, list those that select the workload.
    """
    rows: list[tuple[str, str, str, str]] = []
    for policy in policies:
        for target in targets_of(policy, cluster.document(policy.ref)):
            selecting = target.target
            if workload is None or selecting is None or cluster.authority.world.target_matches(selecting, workload):
                rows.append((policy.ref.kind, policy.ref.name, target.kind, target.expression))
    rows = list(dict.fromkeys(rows))
    data = [dict(zip(("type", "name", "targetKind", "targetExpression"), row, strict=True)) for row in rows]
    if not rows:
        return DescribedField("inheritedPolicies", "InheritedPolicies", data, ("<none>",))
    body = [[[cell] for cell in row] for row in (_RULE, *rows)]
    return list_field("inheritedPolicies", "InheritedPolicies", data, columns(_HEADERS, body, least=_WIDTHS))


def effect_of(cluster: Cluster, ref: PolicyRef, point: Point) -> str:
    """Return the effect of a policy at a point that it targets: `enforced`, `audit` or `none`."""
    effects = cluster.effects(point)
    return "enforced" if ref in effects.enforced else "audit" if ref in effects.observed else "none"


def policies_on(cluster: Cluster, workload: Workload) -> list[Policy]:
    """Return the policies that select a workload by their own target, and those that act on it through another.

    A policy that is attached more widely than it applies is listed only if it has an effect.
    """
    attached = [policy for policy in cluster.attached(workload.key) if policy.targets]
    return [
        policy
        for policy in attached
        if not is_indirect(policy) or effect_of(cluster, policy.ref, workload.key) != "none"
    ]


def policies_field(cluster: Cluster, policies: Sequence[Policy], workload: Workload) -> DescribedField:
    """List each policy on a workload, with its action and the terms of its selector that matched."""
    world = cluster.authority.world
    labels = world.namespace(workload.namespace).labels
    data: list[dict[str, object]] = []
    lines: list[str] = []
    for policy in policies:
        effect = effect_of(cluster, policy.ref, workload.key)
        selecting = [target for target in policy.targets if world.target_matches(target, workload)]
        terms = [matched_terms(target, workload, labels) for target in selecting]
        words = targets_of(policy, cluster.document(policy.ref))
        data.append({**policy_data(policy), "effect": effect, "matched": terms, **_targets(cluster, policy)})
        lines.append(f"{policy.ref}  {does_text(policy)}  {span_text(policy.span)}")
        lines.append("  target   " + "; ".join(f"{target.kind} {target.expression}" for target in words))
        lines += [f"  matched  {', '.join(matched)}" for matched in terms[:1] if not is_indirect(policy)]
        if effect == "none":
            lines.append("  effect   none: no rule of it is in force here")
    return list_field("policies", "Policies", data, lines)


def _targets(cluster: Cluster, policy: Policy) -> dict[str, object]:
    targets = targets_of(policy, cluster.document(policy.ref))
    return {"targets": [{"kind": target.kind, "expression": target.expression} for target in targets]}


def policy_data(policy: Policy) -> dict[str, object]:
    """Return the data of a policy that every list of policies has."""
    tier = tier_of(policy)
    return {
        "kind": policy.ref.kind,
        "group": policy.ref.group,
        "namespace": policy.ref.namespace,
        "name": policy.ref.name,
        "action": action_of(policy),
        "level": level_of(policy),
        "tier": tier.name if tier else None,
        "priority": tier.priority if tier else None,
        "audit": policy.audit,
        **span_data(policy.span),
    }


def points_field(cluster: Cluster, by_point: Mapping[NamedPoint | RuleNamed, Sequence[Policy]]) -> DescribedField:
    """List the policies at each of several points."""
    data: dict[str, object] = {}
    lines: list[str] = []
    for point, policies in by_point.items():
        lines.append(f"{point}:" + ("" if policies else " <none>"))
        entries = []
        for policy in policies:
            effect = effect_of(cluster, policy.ref, point)
            entries.append({**policy_data(policy), "effect": effect, **_targets(cluster, policy)})
            idle = "  (no effect)" if effect == "none" else ""
            lines.append(f"  {policy.ref}  {does_text(policy)}  {span_text(policy.span)}{idle}")
        data[str(point)] = entries
    return list_field("policies", "Policies", data, lines)


def effective_field(
    cluster: Cluster,
    tables: Iterable[tuple[str, EffectiveTable]],
    *,
    title: str = "PORT",
    workloads: Sequence[Workload] = (),
) -> DescribedField:
    """Make the field of the effective table. Several tables each stand below a line that names their subject.

    `workloads` are those behind the destinations.
    """
    titled = list(tables)
    isolation = isolation_text(cluster, workloads) if workloads else None
    data: list[dict[str, object]] = []
    lines: list[Line] = []
    for about, table in titled:
        data.append({"to": about or None, "rows": table_to_json(table)})
        indent = "  " if len(titled) > 1 else ""
        lines += [f"{about}:"] if len(titled) > 1 else []
        text = table_text(table, title=title, whole=cluster.verbose, world=cluster.authority.world, isolation=isolation)
        lines += indent_lines(text, indent)
    return list_field("effective", "Effective", data, lines)
