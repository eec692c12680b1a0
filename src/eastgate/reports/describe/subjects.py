"""Find what to describe: `pod cart`, `pods/cart`, `policy AuthorizationPolicy/cart-from-web`, as people write it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from eastgate.authority.questions import NOT_DECLARED, QuestionError
from eastgate.basics.diagnostics import did_you_mean
from eastgate.cluster import CONTROLLER_KINDS, ROUTE_KINDS
from eastgate.cluster.unread import list_unconsidered
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.gateways import describe_backend, describe_gateway, describe_route
from eastgate.reports.describe.model import DescribedField, Description
from eastgate.reports.describe.namespaces import describe_namespace
from eastgate.reports.describe.pods import describe_pod
from eastgate.reports.describe.policy import describe_policy
from eastgate.reports.describe.services import describe_service
from eastgate.reports.kinds import UnknownKind, Word, policy_kinds, word_of

T = TypeVar("T")

KINDS = ("pod", "service", "gateway", "route", "backend", "namespace", "policy")
_CONTROLLERS = {kind.lower(): kind for kind in CONTROLLER_KINDS}
_ROUTES = {kind.lower() for kind in ROUTE_KINDS}

# A thing that can be described: its namespace, its name, and how to describe it.
Candidate = tuple[str | None, str, Callable[[], Description]]


def describe(cluster: Cluster, kind: str, name: str | None, namespace: str | None) -> list[Description]:
    """Describe everything of a kind, or everything of it that has a name. Raises QuestionError where nothing has it."""
    word = word_of(kind)
    candidates = [candidate for candidate in _candidates(cluster, word, kind) if namespace in (None, candidate[0])]
    if name is None:
        return [_add_unconsidered(cluster, build()) for _, _, build in candidates]
    matching = [candidate for candidate in candidates if _is_name_of(name, word, candidate)]
    if not matching:
        raise _not_found(kind, name, namespace, candidates)
    return [_add_unconsidered(cluster, build()) for _, _, build in matching]


def _add_unconsidered(cluster: Cluster, description: Description) -> Description:
    """Add to a description what was not considered, for any caller from anywhere."""
    if not description.points:
        return description
    has_network = all(isinstance(point, str) for point in description.points)  # as those of workloads have
    unconsidered = cluster.unconsidered(description.points, network=not has_network)
    lines = tuple(list_unconsidered(unconsidered, cluster.authority.unread))
    data = [met.to_json() for met in unconsidered.matches]
    fields = (*description.fields, DescribedField("unconsidered", "Not considered", data, lines, block=True))
    return replace(description, fields=fields)


def names_of(cluster: Cluster, kind: str, namespace: str | None = None) -> list[str]:
    """Return the names that `describe` accepts for a kind."""
    return sorted({name for where, name, _ in _candidates(cluster, word_of(kind), kind) if namespace in (None, where)})


def _is_name_of(text: str, word: Word, candidate: Candidate) -> bool:
    """Return whether a text is a candidate's name, with or without its namespace; of a policy, also with its kind."""
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
    return f"`{kind}` is no kind that can be described{hint}"


def _sorted(declared: Mapping[str, T]) -> list[T]:
    return [declared[key] for key in sorted(declared)]


def _namespaces(cluster: Cluster) -> list[str]:
    of_policies = {policy.ref.namespace for policy in cluster.policies if policy.ref.namespace}
    return sorted({*cluster.authority.world.namespaces_in_use(), *of_policies})


def _pods(cluster: Cluster, kind: str) -> Iterator[Candidate]:
    """Yield workloads by their own names, and by those of their owners."""
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
