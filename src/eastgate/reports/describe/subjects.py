"""Lookup of the object to describe, in the forms that people type: `pod cart`, `pods/cart`, `policy
AuthorizationPolicy/cart-from-web`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from eastgate.authority.authority import programs_of
from eastgate.authority.questions import NOT_DECLARED, QuestionError
from eastgate.basics.diagnostics import did_you_mean
from eastgate.cluster import CONTROLLER_KINDS, ROUTE_KINDS, PodsMatching, Selector, Service, ServicePort, Workload
from eastgate.cluster.unread import list_left_out, list_unconsidered
from eastgate.dialects.words import Mode
from eastgate.ir import PolicyRef
from eastgate.reach.table import EffectiveDestination, EffectiveTable, effective_table
from eastgate.reach.workloads import service_alone
from eastgate.reports.cluster import Cluster
from eastgate.reports.columns import columns
from eastgate.reports.describe.gateways import describe_backend, describe_gateway, describe_route
from eastgate.reports.describe.model import DescribedField, Description, list_field, shorten, value_field
from eastgate.reports.describe.modes import modes, summary
from eastgate.reports.describe.pods import describe_pod
from eastgate.reports.describe.policies import does_text, findings_field
from eastgate.reports.describe.policy import describe_policy
from eastgate.reports.describe.tables import effective_field, labels_text, policies_on, policy_data, span_data
from eastgate.reports.effective import span_text
from eastgate.reports.kinds import UnknownKind, Word, policy_kinds, word_of

# `describe namespace`: its workloads, the open ones among them, and its policies.


_MAX_ROWS = 50


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
    table = columns(["WORKLOAD", "SERVICEACCOUNT", "PORTS", "POLICIES", "MODE"], rows[:_MAX_ROWS]) if rows else []
    more = [f"... and {len(rows) - _MAX_ROWS} more"] if len(rows) > _MAX_ROWS else []
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
            _namespace_policies(cluster, name),
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


def _namespace_policies(cluster: Cluster, name: str) -> DescribedField:
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


# `describe service`: the pods behind it, their differences, and the callers of all of them.


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
    """Group the pods that decide alike. A Service should have one group."""
    groups: dict[int, list[Workload]] = {}
    for pod in pods:
        groups.setdefault(id(programs_of(cluster.authority).program(pod.key)), []).append(pod)
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
        return list_field("effective", "Effective", [], [], none="no workload is behind it")
    return effective_field(cluster, [("", table)], workloads=pods)


def service_table(cluster: Cluster, service: Service) -> EffectiveTable | None:
    """Return the table of callers of its ports. A port is allowed only if every pod behind the Service allows it."""
    destinations = [
        EffectiveDestination(str(port), entrance.passages[0].points, (port,))
        for entrance in service_alone(cluster.authority, service).entrances
        for port in entrance.ports
    ]
    return effective_table(destinations, cluster.authority.settings, cluster.given) if destinations else None


T = TypeVar("T")

KINDS = ("pod", "service", "gateway", "route", "backend", "namespace", "policy")
_CONTROLLERS = {kind.lower(): kind for kind in CONTROLLER_KINDS}
_ROUTES = {kind.lower() for kind in ROUTE_KINDS}

# An object that can be described: its namespace, its name, and a function that describes it.
Candidate = tuple[str | None, str, Callable[[], Description]]


def describe(cluster: Cluster, kind: str, name: str | None, namespace: str | None) -> list[Description]:
    """Describe all objects of a kind, or all that have a name. Raises QuestionError if there is none."""
    word = word_of(kind)
    candidates = [candidate for candidate in _candidates(cluster, word, kind) if namespace in (None, candidate[0])]
    if name is None:
        return [_add_unconsidered(cluster, build()) for _, _, build in candidates]
    matching = [candidate for candidate in candidates if _is_name_of(name, word, candidate)]
    if not matching:
        raise _not_found(kind, name, namespace, candidates)
    return [_add_unconsidered(cluster, build()) for _, _, build in matching]


def _add_unconsidered(cluster: Cluster, description: Description) -> Description:
    """Add to a description the objects that were not considered, for any caller from anywhere."""
    if not description.points:
        return description
    has_network = all(isinstance(point, str) for point in description.points)  # points of workloads are texts
    unconsidered = cluster.unconsidered(description.points, network=not has_network)
    lost = list_left_out(unconsidered.matches)
    lines = (*lost, *list_unconsidered(unconsidered, cluster.authority.unread))
    data = [met.to_json() for met in unconsidered.matches]
    fields = (*description.fields, DescribedField("unconsidered", "Not considered", data, lines, block=True))
    return replace(description, fields=fields)


def names_of(cluster: Cluster, kind: str, namespace: str | None = None) -> list[str]:
    """Return the names that `describe` accepts for a kind."""
    return sorted({name for where, name, _ in _candidates(cluster, word_of(kind), kind) if namespace in (None, where)})


def _is_name_of(text: str, word: Word, candidate: Candidate) -> bool:
    """Return whether a text is the name of a candidate, with or without its namespace; for a policy, also with its
    kind.
    """
    namespace, name, _ = candidate
    bare = name.rpartition("/")[2]
    names = {name, bare, f"{namespace}/{bare}"}
    if word.kind == "policy" or "/" in name:
        kind = name.partition("/")[0]
        names |= {f"{kind}/{bare}", f"{kind}/{namespace}/{bare}"}
        first, slash, rest = text.partition("/")
        return text in names or (bool(slash) and f"{policy_kinds().get(word_of(first).kind, first)}/{rest}" in names)
    return text in names


def _not_found(kind: str, name: str, namespace: str | None, candidates: Iterable[Candidate]) -> QuestionError:
    where = f" in namespace {namespace}" if namespace else ""
    near = did_you_mean(name, {candidate[1].rpartition("/")[2] for candidate in candidates})
    hint = f"did you mean {near}?" if near else None
    return QuestionError(NOT_DECLARED, f"no manifest declares {kind} {name}{where}", hint)


def _candidates(cluster: Cluster, word: Word, text: str) -> Iterator[Candidate]:
    world = cluster.authority.world
    kind = word.kind
    if kind in ("pod", "workload", "externalworkload") or kind in _CONTROLLERS:
        yield from _pods(cluster, kind)
    elif kind == "service":
        for service in _sorted(world.services):
            yield service.namespace, service.name, partial(describe_service, cluster, service)
    elif kind == "gateway":
        for gateway in _sorted(world.gateways):
            yield gateway.namespace, gateway.name, partial(describe_gateway, cluster, gateway)
    elif kind in ("backend", "xbackend"):
        for backend in _sorted(world.backends):
            yield backend.namespace, backend.name, partial(describe_backend, cluster, backend)
    elif kind == "namespace":
        for name in _namespaces(cluster):
            yield None, name, partial(describe_namespace, cluster, name)
    elif kind in ("route", "policy") or kind in _ROUTES or kind in policy_kinds():
        yield from _routes(cluster, word)
        yield from _policies(cluster, word)
    else:
        raise UnknownKind(_explain_unknown(text))


def _explain_unknown(kind: str) -> str:
    near = did_you_mean(kind.lower(), [*KINDS, *policy_kinds()])
    hint = f"; did you mean {near}?" if near else f": write {', '.join(KINDS)}, or the kind of a policy"
    return f"`{kind}` is not a kind that can be described{hint}"


def _sorted(declared: Mapping[str, T]) -> list[T]:
    return [declared[key] for key in sorted(declared)]


def _namespaces(cluster: Cluster) -> list[str]:
    of_policies = {policy.ref.namespace for policy in cluster.policies if policy.ref.namespace}
    return sorted({*cluster.authority.world.namespaces_in_use(), *of_policies})


def _pods(cluster: Cluster, kind: str) -> Iterator[Candidate]:
    """Yield workloads by their own names, and by the names of their owners."""
    wanted = _CONTROLLERS.get(kind)
    for key in sorted(cluster.authority.world.workloads):
        workload = cluster.authority.world.workloads[key]
        names = [owner.name for owner in workload.owners if wanted in (None, owner.kind)]
        if (
            wanted is None
            and (workload.is_pod or kind != "pod")
            and (kind != "externalworkload" or not workload.is_pod)
        ):
            names.insert(0, workload.name)
        for name in dict.fromkeys(names):
            yield workload.namespace, name, partial(describe_pod, cluster, workload)


def _routes(cluster: Cluster, word: Word) -> Iterator[Candidate]:
    if word.kind == "route" or word.kind in _ROUTES:
        for route in _sorted(cluster.authority.world.routes):
            if word.kind in ("route", route.kind.lower()):
                yield route.namespace, route.name, partial(describe_route, cluster, route)


def _policies(cluster: Cluster, word: Word) -> Iterator[Candidate]:
    for policy in cluster.policies:
        ref = policy.ref
        is_route = word.kind == "route" and ref.kind in ROUTE_KINDS
        if is_route or word.kind in ("policy", ref.kind.lower()):
            name = f"{ref.kind}/{ref.name}" if word.kind == "policy" else ref.name
            if word.group in (None, ref.group):
                yield ref.namespace, name, partial(describe_policy, cluster, policy)
