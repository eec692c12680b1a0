"""`describe service`: the pods behind it, where they differ, and who may reach all of them."""

from __future__ import annotations

from eastgate.cluster import Service, ServicePort, Workload
from eastgate.reach.table import EffectiveDestination, EffectiveTable, effective_table
from eastgate.reach.workloads import service_alone
from eastgate.reports.cluster import Cluster
from eastgate.reports.columns import columns
from eastgate.reports.describe.findings import findings_field
from eastgate.reports.describe.model import DescribedField, Description, list_field, shorten, value_field
from eastgate.reports.describe.modes import modes, summary
from eastgate.reports.describe.tables import effective_field, labels_text, policies_on, span_data


def describe_service(cluster: Cluster, service: Service) -> Description:
    world = cluster.authority.world
    pods = [world.workloads[key] for key in world.pods_of(service.key)]
    return Description(
        (
            value_field("kind", "Kind", "Service"),
            value_field("name", "Name", service.name),
            value_field("namespace", "Namespace", service.namespace),
            value_field("type", "Type", service.type),
            value_field(
                "selector", "Selector", dict(sorted(service.selector.items())), ",".join(labels_text(service.selector))
            ),
            _ports(cluster, service, pods),
            list_field("pods", "Pods", [pod.key for pod in pods], shorten([pod.key for pod in pods])),
            _differences(cluster, pods),
            _effective(cluster, service, pods),
            findings_field(cluster, {service.key, f"Service/{service.key}"}),
            DescribedField("source", "Source", span_data(service.span), ()),
        ),
        tuple(pod.key for pod in pods),
    )


def _ports(cluster: Cluster, service: Service, pods: list[Workload]) -> DescribedField:
    data: list[dict[str, object]] = []
    rows = []
    for port in service.ports:
        targets = _targets(cluster, service, port, pods)
        numbers = sorted({number for reached in targets.values() for number in reached})
        missing = sorted(key for key, reached in targets.items() if not reached)
        data.append(
            {
                "port": port.port,
                "name": port.name,
                "protocol": port.protocol,
                "target": port.target,
                "leadsTo": {key: list(reached) for key, reached in targets.items()},
            }
        )
        leads = ", ".join(map(str, numbers)) or "nowhere"
        note = f"no such port at {', '.join(shorten(missing, 5))}" if missing and pods else ""
        name = f" ({port.name})" if port.name else ""
        rows.append([[f"{port.port}/{port.protocol}{name}"], [f"-> {port.target}"], [f"= {leads}"], [note]])
    return list_field("ports", "Ports", data, columns(None, rows))


def _targets(cluster: Cluster, service: Service, port: ServicePort, pods: list[Workload]) -> dict[str, tuple[int, ...]]:
    return {pod.key: cluster.authority.world.target_ports(service, port.port, pod) for pod in pods}


def _differences(cluster: Cluster, pods: list[Workload]) -> DescribedField:
    """Group the pods that decide alike; a Service should have no more than one group."""
    groups: dict[int, list[Workload]] = {}
    for pod in pods:
        groups.setdefault(id(cluster.authority.programs.program(pod.key)), []).append(pod)
    data: list[dict[str, object]] = []
    lines: list[str] = []
    for members in groups.values():
        policies = [str(policy.ref) for policy in policies_on(cluster, members[0])]
        mode = summary(modes(cluster, members[0]))
        data.append({"pods": [pod.key for pod in members], "policies": policies, "mode": mode})
        lines.append(", ".join(shorten([pod.key for pod in members], 5)) + f": {mode}")
        lines += [f"  {policy}" for policy in policies] or ["  no policy"]
    return list_field("groups", "Pods that decide alike", data, lines)


def _effective(cluster: Cluster, service: Service, pods: list[Workload]) -> DescribedField:
    table = service_table(cluster, service)
    if table is None:
        return list_field("effective", "Effective", [], [], none="there is nothing behind it to reach")
    return effective_field(cluster, [("", table)], workloads=pods)


def service_table(cluster: Cluster, service: Service) -> EffectiveTable | None:
    """Return the table of who may reach its ports: a port is allowed only where every pod behind it allows."""
    destinations = [
        EffectiveDestination(str(port), entrance.passages[0].points, (port,))
        for entrance in service_alone(cluster.authority, service).entrances
        for port in entrance.ports
    ]
    return effective_table(destinations, cluster.authority.settings, cluster.given) if destinations else None
