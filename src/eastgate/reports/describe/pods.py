"""`describe pod`: its identity, the policies that affect it, and its callers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from eastgate.authority.enforcement import PolicyEnforcement
from eastgate.cluster import Workload, service_account_id
from eastgate.dialects import registered
from eastgate.ir import OneOf
from eastgate.ir.attributes import SERVICE
from eastgate.ir.predicates import Is, Predicate, atoms
from eastgate.ir.symbolic.partial import Facts
from eastgate.reach.endings import EnforcementPoint
from eastgate.reach.table import EffectiveTable, destinations_at, effective_table
from eastgate.reach.workloads import layers_before
from eastgate.reports.cluster import Cluster
from eastgate.reports.columns import columns
from eastgate.reports.describe.model import DescribedField, Description, list_field, value_field
from eastgate.reports.describe.modes import ShownMode, modes, stances_of, summary
from eastgate.reports.describe.policies import findings_field
from eastgate.reports.describe.tables import (
    effective_field,
    inherited_field,
    labels_text,
    policies_field,
    policies_on,
    span_data,
)


def describe_pod(cluster: Cluster, workload: Workload) -> Description:
    direct = policies_on(cluster, workload)
    return Description(
        (
            value_field("kind", "Kind", workload.kind, _kind(workload)),
            value_field("name", "Name", workload.name),
            value_field("namespace", "Namespace", workload.namespace),
            value_field(
                "key", "Key", workload.key, "" if workload.key == f"{workload.namespace}/{workload.name}" else None
            ),
            DescribedField("derived", "Derived", workload.derived, ()),
            DescribedField("owners", "Owners", [list(owner) for owner in workload.owners], ()),
            *_identity(cluster, workload),
            list_field("labels", "Labels", dict(sorted(workload.labels.items())), labels_text(workload.labels)),
            value_field("ips", "IPs", list(workload.ips), ", ".join(workload.ips)),
            _ports(workload),
            _services(cluster, workload),
            inherited_field(cluster, direct, workload),
            policies_field(cluster, direct, workload),
            _modes(cluster, workload),
            _enforcement(cluster, workload),
            effective_field(cluster, pod_tables(cluster, workload), workloads=[workload]),
            findings_field(cluster, {workload.key, f"Pod/{workload.key}"}),
            DescribedField("source", "Source", span_data(workload.span), ()),
        ),
        (workload.key,),
    )


def _kind(workload: Workload) -> str:
    if workload.derived and workload.owners:
        return f"{workload.kind} (as {workload.owners[0].kind} {workload.owners[0].name} makes it)"
    return workload.kind


def _identity(cluster: Cluster, workload: Workload) -> list[DescribedField]:
    if not workload.is_pod:
        return [
            DescribedField("serviceAccount", "Service Account", None, ()),
            value_field("identity", "Identity", workload.mesh_name),
            _mesh_name(cluster, workload),
        ]
    spiffe = service_account_id(cluster.authority.settings.trust_domain, workload.namespace, workload.service_account)
    return [
        value_field("serviceAccount", "Service Account", workload.service_account),
        value_field("identity", "Identity", spiffe),
        _mesh_name(cluster, workload),
    ]


def _mesh_name(cluster: Cluster, workload: Workload) -> DescribedField:
    """Return the name of the workload in a dialect that has its own names, if the dialect applies to it."""
    stances = stances_of(cluster, workload)
    for dialect in registered().dialects:
        if dialect.words.mesh_name is not None and (not workload.is_pod or dialect.name in stances):
            name = dialect.words.mesh_name(workload, cluster.authority.settings)
            return value_field("meshName", f"{dialect.name} Name", name)
    return DescribedField("meshName", "Name in the mesh", None, ())


def _ports(workload: Workload) -> DescribedField:
    ports = [{"number": port.number, "name": port.name, "protocol": port.protocol} for port in workload.ports]
    text = (f"{port.number}/{port.protocol}" + (f" ({port.name})" if port.name else "") for port in workload.ports)
    return value_field("ports", "Ports", ports, ", ".join(text) or "<none>")


def declared_ports(workload: Workload) -> list[int]:
    return [port.number for port in workload.ports]


def _services(cluster: Cluster, workload: Workload) -> DescribedField:
    keys = cluster.authority.world.services_of(workload.key)
    return value_field("services", "Services", list(keys), ", ".join(keys) or "<none>")


def _modes(cluster: Cluster, workload: Workload) -> DescribedField:
    shown = modes(cluster, workload)
    listed = shown if cluster.verbose else _brief(shown)
    parts = Counter(mode.layer for mode in listed)
    rows = [
        [
            [_part_of_layer(mode, is_only=parts[mode.layer] == 1)],
            [str(mode.mode)],
            [mode.exact_why if cluster.verbose else mode.why],
        ]
        for mode in listed
    ]
    data = {"summary": summary(shown), "layers": [mode.to_json() for mode in shown]}
    return list_field("mode", "Mode", data, columns(None, rows))


def _brief(shown: Sequence[ShownMode]) -> list[ShownMode]:
    """Leave out layers without policies, if other layers have policies. Merge equal parts of a layer."""
    has_policies = any(mode.policies for mode in shown)
    brief: list[ShownMode] = []
    for _, of_layer in groupby(shown, key=lambda mode: mode.at):
        parts = list(of_layer)
        alike = len({(mode.mode, mode.why) for mode in parts}) == 1
        brief += [replace(parts[0], where="")] if alike and len(parts) > 1 else parts
    return [mode for mode in brief if not (mode.untargeted and has_policies)]


def _part_of_layer(mode: ShownMode, *, is_only: bool) -> str:
    part = mode.where or ("" if is_only else "otherwise")
    return f"{mode.layer} ({part})" if part else mode.layer


def _enforcement(cluster: Cluster, workload: Workload) -> DescribedField:
    """List the enforcers of the policies of the pod, if they are known."""
    found = cluster.enforcement(workload.key)
    rows = [[[_enforcer(each)], [each.why], [str(ref)]] for each in found for ref in each.policies]
    data = [each.to_json() for each in found]
    return DescribedField("enforcement", "Enforced by", data, tuple(columns(None, rows)), block=bool(rows))


def _enforcer(found: PolicyEnforcement) -> str:
    if not found.applies:
        return "does not apply"
    return f"{found.by or 'nothing'}{'' if found.certain else ' (not certain)'}"


def pod_tables(cluster: Cluster, workload: Workload) -> list[tuple[str, EffectiveTable]]:
    """Return the tables of callers of its ports: one for each Service that a rule names, and one without a Service."""
    layers = layers_before(cluster.authority, workload)
    addressed: list[str | None] = [None]
    if any(SERVICE in layer.looks_at for layer in layers):
        services = {service for layer in layers for case in layer.cases for service in _services_in(case.when)}
        addressed += sorted(services & set(cluster.authority.world.services_of(workload.key)))
    tables = []
    for service in addressed:
        point = EnforcementPoint((workload.key,), layers, Facts({SERVICE: service}))
        table = effective_table(
            destinations_at(point, declared_ports(workload)), cluster.authority.settings, cluster.given
        )
        tables.append((f"addressed to Service {service}" if service else "addressed to the pod", table))
    return tables


def _services_in(when: Predicate) -> set[str]:
    return {
        str(value)
        for atom in atoms(when)
        if isinstance(atom, Is) and atom.attribute == SERVICE and isinstance(atom.matcher, OneOf)
        for value in atom.matcher.values
    }
