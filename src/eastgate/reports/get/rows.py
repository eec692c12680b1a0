"""The rows of each kind of listing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from eastgate.cluster import (
    API_KINDS,
    CONTROLLER_KINDS,
    GATEWAY_GROUP,
    ROUTE_KINDS,
    Backend,
    Gateway,
    ObjectId,
    Route,
    Service,
    Workload,
)
from eastgate.cluster.externals import EXTERNAL_GROUP
from eastgate.cluster.targets import BackendNamed, GatewayNamed, RouteNamed
from eastgate.dialects import Policy, dialect_of, registered
from eastgate.dialects.words import Mode
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Document
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.modes import modes, summary
from eastgate.reports.describe.policies import action_of, count_rules, level_of, targets_of, tier_of
from eastgate.reports.describe.policy import conditions_of
from eastgate.reports.describe.tables import policies_on
from eastgate.reports.effective import span_text
from eastgate.reports.get.manifests import age_of, labels_of
from eastgate.reports.get.model import Listed, Listing
from eastgate.reports.kinds import Word, matches_kind

T = TypeVar("T", Service, Gateway, Route, Backend)

_GROUPS = {**CONTROLLER_KINDS, "Pod": "", "ExternalWorkload": EXTERNAL_GROUP}


def _short(entries: Iterable[str], most: int = 3) -> str:
    texts = list(entries)
    more = f" + {len(texts) - most} more" if len(texts) > most else ""
    return (",".join(texts[:most]) or "<none>") + more


# Policies


def policies(cluster: Cluster, word: Word) -> Listing:
    """List policies, all of them or those of one kind."""
    chosen = [policy for policy in cluster.policies if matches_kind(word, policy.ref.kind, policy.ref.group)]
    rows = [_policy(cluster, policy) for policy in chosen]
    enforced = ("ENFORCED",) if cluster.knows_proxies else ()
    headers = ("NAMESPACE", "NAME", "KIND", "TARGET", "ACTION", "RULES", "AFFECTS", "ACCEPTED", *enforced, "AGE")
    return Listing(headers, ("LEVEL", "TIER", "PRIORITY", "MODE", "GROUP", "SOURCE"), rows)


def _policy(cluster: Cluster, policy: Policy) -> Listed:
    ref, document, tier = policy.ref, cluster.document(policy.ref), tier_of(policy)
    targets = (f"{target.kind}/{target.text}" for target in targets_of(policy, document))
    accepted = next((condition.status for condition in conditions_of(cluster, policy)), "Unknown")
    cells = (
        ref.namespace or "",
        ref.name,
        ref.kind,
        _short(targets, 2),
        action_of(policy),
        str(count_rules(policy)),
        str(cluster.affected_counts[ref]),
        accepted,
        *((_enforced(cluster, policy),) if cluster.knows_proxies else ()),
        age_of(document),
    )
    mode = "audit" if policy.audit else "enforce"
    order = (tier.name, str(tier.priority)) if tier else ("-", "-")
    wide = (level_of(policy), *order, mode, ref.group, span_text(policy.span))
    labels = labels_of(document) if document is not None else {}
    return Listed(ref.namespace or "", ref.name, ref.kind, ref.group, cells, wide, labels, _only(document))


def _enforced(cluster: Cluster, policy: Policy) -> str:
    """Return the number of targeted points that have an enforcer; `?` if that is uncertain."""
    points, unenforced = cluster.points(policy), cluster.unenforced(policy).values()
    doubt = "?" if any(not each.certain for each in unenforced) else ""
    return f"{len(points) - sum(each.certain for each in unenforced)} of {len(points)}{doubt}"


def _only(document: Document | None) -> tuple[Document, ...]:
    return (document,) if document is not None else ()


# Workloads


def workloads(cluster: Cluster, word: Word) -> Listing:
    """List workloads; `pods` excludes those outside the cluster."""
    declared = sorted(cluster.authority.world.workloads.items())
    rows = [
        _workload(cluster, workload)
        for _, workload in declared
        if word.kind == "workload" or word.kind == workload.kind.lower()
    ]
    headers = ("NAMESPACE", "NAME", "KIND", "SERVICEACCOUNT", "PORTS", "POLICIES", "MODE", "AGE")
    return Listing(headers, ("SERVICES", "IPS", "LABELS", "LAYERS"), rows)


def _workload(cluster: Cluster, workload: Workload) -> Listed:
    shown = modes(cluster, workload)
    owner = workload.owners[0] if workload.owners else None
    kinds = [workload.kind] if not workload.derived or owner is None else [owner.kind, workload.kind]
    names = (
        ObjectId(_GROUPS.get(kind, ""), API_KINDS.get(kind, kind), workload.namespace, workload.name) for kind in kinds
    )
    document = next((manifest for name in names if (manifest := cluster.document(name)) is not None), None)
    cells = (
        workload.namespace,
        workload.name,
        kinds[0],
        workload.service_account or "-",
        _short(map(str, dict.fromkeys(port.number for port in workload.ports)), 5),
        str(len(policies_on(cluster, workload))),
        summary(shown),
        age_of(document),
    )
    wide = (
        _short(key.partition("/")[2] for key in cluster.authority.world.services_of(workload.key)),
        _short(workload.ips),
        _short((f"{key}={value}" for key, value in sorted(workload.labels.items())), 6),
        _short((f"{mode.level}{'@' + mode.where if mode.where else ''}:{mode.mode}" for mode in shown), 6),
    )
    group = _GROUPS.get(kinds[0], "apps")
    return Listed(workload.namespace, workload.name, kinds[0], group, cells, wide, workload.labels, _only(document))


# Services, gateways, routes, backends


def services(cluster: Cluster, _word: Word) -> Listing:
    world = cluster.authority.world

    def row(service: Service, document: Document | None) -> tuple[str, ...]:
        ports = (f"{port.port}->{port.target}" for port in service.ports)
        pods = world.pods_of(service.key)
        modes_in_use = {summary(modes(cluster, world.workloads[pod])) for pod in pods}
        return (
            service.namespace,
            service.name,
            service.type,
            _short(ports),
            str(len(pods)),
            _short(sorted(modes_in_use)),
            age_of(document),
        )

    rows = [_object(cluster, service, row) for _, service in sorted(world.services.items())]
    return Listing(("NAMESPACE", "NAME", "TYPE", "PORTS", "PODS", "MODE", "AGE"), (), rows)


def gateways(cluster: Cluster, _word: Word) -> Listing:
    world = cluster.authority.world

    def row(gateway: Gateway, document: Document | None) -> tuple[str, ...]:
        listeners = (f"{listener.protocol}:{listener.port}" for listener in gateway.listeners)
        attached = cluster.attached(GatewayNamed(gateway.namespace, gateway.name))
        of = GATEWAY_GROUP, "Gateway"
        routes = sum(
            any((p.group, p.kind, p.namespace, p.name) == (*of, gateway.namespace, gateway.name) for p in route.parents)
            for route in world.routes.values()
        )
        head = (gateway.namespace, gateway.name, gateway.gateway_class or "-", _short(listeners))
        return (*head, str(routes), str(len(attached)), age_of(document))

    rows = [_object(cluster, gateway, row) for _, gateway in sorted(world.gateways.items())]
    return Listing(("NAMESPACE", "NAME", "CLASS", "LISTENERS", "ROUTES", "POLICIES", "AGE"), (), rows)


def routes(cluster: Cluster, word: Word) -> Listing:
    """List routes of all kinds, or of one kind."""
    world = cluster.authority.world
    targeting = _on_routes(cluster)

    def row(route: Route, document: Document | None) -> tuple[str, ...]:
        parents = (f"{parent.kind}/{parent.name}" for parent in route.parents)
        attached = len(cluster.attached(RouteNamed(route.namespace, route.name))) if route.kind == "HTTPRoute" else 0
        attached += targeting[PolicyRef(route.kind, route.namespace, route.name, route.id.group)]
        head = (route.namespace, route.name, route.kind, _short(route.hostnames), _short(parents))
        return (*head, str(attached), age_of(document))

    chosen = [route for _, route in sorted(world.routes.items()) if word.kind in ("route", route.kind.lower())]
    rows = [_object(cluster, route, row) for route in chosen]
    rows += [_bare(document, targeting) for document in cluster.documents if _is_other_route(document, word)]
    return Listing(
        ("NAMESPACE", "NAME", "KIND", "HOSTNAMES", "PARENTS", "POLICIES", "AGE"), (), sorted(rows, key=_by_name)
    )


def _is_other_route(document: Document, word: Word) -> bool:
    """Return whether a document is a route of a policy API that defines its own parents."""
    kind, group = document.kind, document.group
    return kind in ROUTE_KINDS and (group, kind) in _other_routes() and matches_kind(word, kind, group)


def _other_routes() -> dict[tuple[str, str], str]:
    """Return the routes of policy APIs by group and kind, with the kind of their parents."""
    return {(kind.group, kind.kind): kind.parent for kind in registered().kinds if kind.parent is not None}


def _on_routes(cluster: Cluster) -> Counter[PolicyRef]:
    """Return the number of policies that target each route, by its name."""
    return Counter(ref for policy in cluster.policies for ref in dialect_of(policy).words.names(policy))


def _bare(document: Document, targeting: Counter[PolicyRef]) -> Listed:
    namespace, parent = document.home, _other_routes()[document.group, document.kind]
    policies = str(targeting[PolicyRef(document.kind, namespace, document.name, document.group)])
    cells = (namespace, document.name, document.kind, "<none>", parent, policies, age_of(document))
    return Listed(namespace, document.name, document.kind, document.group, cells, (), labels_of(document), (document,))


def backends(cluster: Cluster, _word: Word) -> Listing:

    def row(backend: Backend, document: Document | None) -> tuple[str, ...]:
        to = f"Service/{backend.service_name}" if backend.service_name else str(backend.hostname)
        attached = cluster.attached(BackendNamed(backend.namespace, backend.name))
        return (
            backend.namespace,
            backend.name,
            backend.kind,
            to,
            str(backend.port),
            str(len(attached)),
            age_of(document),
        )

    declared = sorted(cluster.authority.world.backends.items())
    rows = [_object(cluster, backend, row) for _, backend in declared]
    return Listing(("NAMESPACE", "NAME", "KIND", "DESTINATION", "PORT", "POLICIES", "AGE"), (), rows)


def _object(cluster: Cluster, declared: T, row: Callable[[T, Document | None], tuple[str, ...]]) -> Listed:
    document = cluster.document(declared.id)
    labels = labels_of(document) if document is not None else {}
    return Listed(
        declared.namespace,
        declared.name,
        declared.id.kind,
        declared.id.group,
        row(declared, document),
        (),
        labels,
        _only(document),
    )


def namespaces(cluster: Cluster, _word: Word) -> Listing:
    """List namespaces, declared or used."""
    world = cluster.authority.world
    mine: dict[str, list[Workload]] = {name: [] for name in world.namespaces_in_use()}
    for workload in world.workloads.values():
        mine[workload.namespace].append(workload)
    owned: dict[str | None, int] = {}
    for policy in cluster.policies:
        owned[policy.ref.namespace] = owned.get(policy.ref.namespace, 0) + 1
    rows = []
    for name, members in sorted(mine.items()):
        document = cluster.document(ObjectId("", "Namespace", "", name))
        summaries = [summary(modes(cluster, workload)) for workload in members]
        open_ones = sum(mode in (Mode.OPEN, Mode.GUARDED) for mode in summaries)
        cells = (name, str(len(members)), str(open_ones), str(owned.get(name, 0)), age_of(document))
        labels = dict(world.namespace(name).labels)
        wide = (_short((f"{key}={value}" for key, value in sorted(labels.items())), 6),)
        rows.append(Listed("", name, "Namespace", "", cells, wide, labels, _only(document)))
    return Listing(("NAME", "WORKLOADS", "OPEN", "POLICIES", "AGE"), ("LABELS",), rows)


# Objects of other kinds


def objects(cluster: Cluster, word: Word) -> Listing:
    """List the manifests of any other kind, whether Eastgate reads it or not."""
    rows = [
        Listed(
            document.namespace or "",
            document.name,
            document.kind,
            document.group,
            (document.namespace or "", document.name, document.kind, age_of(document)),
            (document.api_version, span_text(document.span)),
            labels_of(document),
            (document,),
        )
        for document in cluster.documents
        if matches_kind(word, document.kind, document.group)
    ]
    return Listing(("NAMESPACE", "NAME", "KIND", "AGE"), ("APIVERSION", "SOURCE"), sorted(rows, key=_by_name))


def _by_name(row: Listed) -> tuple[str, str, str]:
    return row.namespace, row.name, row.kind
