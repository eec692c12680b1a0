"""`describe namespace`: its workloads, which of them are open, and its policies."""

from __future__ import annotations

from eastgate.cluster import PodsMatching, Selector
from eastgate.dialects.modes import Mode
from eastgate.ir import PolicyRef
from eastgate.reports.cluster import Cluster
from eastgate.reports.columns import columns
from eastgate.reports.describe.findings import findings_field
from eastgate.reports.describe.model import DescribedField, Description, list_field, shorten, value_field
from eastgate.reports.describe.modes import modes, summary
from eastgate.reports.describe.policies import does_text
from eastgate.reports.describe.tables import labels_text, policies_on, policy_data, span_data
from eastgate.reports.effective import span_text

_MOST = 50


def describe_namespace(cluster: Cluster, name: str) -> Description:
    world = cluster.authority.world
    namespace = world.namespace(name)
    workloads = [_workload(cluster, key) for key in sorted(world.select(PodsMatching(name, Selector.of())))]
    open_ones = [str(workload["key"]) for workload in workloads if workload["mode"] in (Mode.OPEN, Mode.GUARDED)]
    rows = [
        [
            [str(workload["key"])],
            [str(workload["serviceAccount"])],
            [str(workload["ports"])],
            [str(workload["policies"])],
            [str(workload["mode"])],
        ]
        for workload in workloads
    ]
    table = columns(["WORKLOAD", "SERVICEACCOUNT", "PORTS", "POLICIES", "MODE"], rows[:_MOST]) if rows else []
    more = [f"... and {len(rows) - _MOST} more"] if len(rows) > _MOST else []
    services = sorted(key for key, service in world.services.items() if service.namespace == name)
    return Description(
        (
            value_field("kind", "Kind", "Namespace"),
            value_field("name", "Name", name),
            DescribedField("declared", "Declared", name in world.namespaces, ()),
            list_field("labels", "Labels", dict(sorted(namespace.labels.items())), labels_text(namespace.labels)),
            list_field(
                "annotations",
                "Annotations",
                dict(sorted(namespace.annotations.items())),
                labels_text(namespace.annotations),
            ),
            value_field("services", "Services", services, ", ".join(shorten(services)) or "<none>"),
            list_field("workloads", "Workloads", workloads, [*table, *more]),
            list_field("open", "Open workloads", open_ones, shorten(open_ones)),
            _policies(cluster, name),
            findings_field(cluster, {f"Namespace/{name}"}),
            DescribedField("source", "Source", span_data(namespace.span), ()),
        ),
        tuple(str(workload["key"]) for workload in workloads),
    )


def _workload(cluster: Cluster, key: str) -> dict[str, object]:
    workload = cluster.authority.world.workloads[key]
    return {
        "key": key,
        "serviceAccount": workload.service_account,
        "ports": ",".join(str(port.number) for port in workload.ports) or "-",
        "policies": len(policies_on(cluster, workload)),
        "mode": summary(modes(cluster, workload)),
    }


def _policies(cluster: Cluster, name: str) -> DescribedField:
    data: list[dict[str, object]] = []
    rows = []
    acting: set[PolicyRef] = set()
    for key in cluster.authority.world.select(PodsMatching(name, Selector.of())):
        effects = cluster.effects(key)
        acting |= effects.enforced | effects.observed
    for policy in cluster.policies:
        if policy.ref.namespace == name or policy.ref in acting:
            affected = cluster.affected(policy)
            data.append({**policy_data(policy), "affects": [str(point) for point in affected]})
            rows.append(
                [[str(policy.ref)], [does_text(policy)], [f"affects {len(affected)}"], [span_text(policy.span)]]
            )
    return list_field("policies", "Policies", data, columns(None, rows))
