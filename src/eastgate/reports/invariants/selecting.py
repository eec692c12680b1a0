"""Whether a change alters the callers or destinations of a statement, or may matter to pods that do not exist yet."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.authority.authority import Authority, programs_of
from eastgate.cluster import ROUTE_KINDS, PodNamed, PodsMatching, PodsOfAccount, PodsOfService, PodsOwnedBy, Target
from eastgate.cluster.points import NamedPoint
from eastgate.cluster.targets import HostNamed, RulesOfGateway, RulesOfRoute
from eastgate.reach.comparison import AuthorityComparison
from eastgate.reach.pairing import differing_objects
from eastgate.reports.invariants.covering import covers_of
from eastgate.reports.invariants.model import Statement

_ABOUT_NO_PODS = (NamedPoint, HostNamed, RulesOfGateway, RulesOfRoute)
_IN_A_NAMESPACE = (PodsMatching, PodNamed, PodsOfAccount, PodsOfService, PodsOwnedBy)
_ABOUT_EXISTING = frozenset({"Backend", "ReferenceGrant", "ServiceAccount", "XBackend"})
_IN_ITS_NAMESPACE = frozenset({*ROUTE_KINDS, "Service"})


def selects_otherwise(comparison: AuthorityComparison, statement: Statement) -> str | None:
    """Return the reason why a statement may cover other callers or destinations than before, or None."""
    callers, destinations = statement.callers, statement.destinations
    selectors = (callers.of.namespaces, callers.without.namespaces, destinations.namespaces)
    keys = frozenset(key for selector in selectors if selector is not None for key in selector.keys)
    services = frozenset(name.key for name in destinations.services)
    for name in differing_objects(comparison.old, comparison.new):
        if name.kind == "Namespace":
            was, now = (side.world.namespace(name.name).labels for side in (comparison.old, comparison.new))
            if any(was.get(key) != now.get(key) for key in keys):
                return f"it selects namespaces by labels, and those of {name.name} change"
        elif name.kind == "Service" and f"{name.namespace}/{name.name}" in services:
            return f"it is about the Service {name.namespace}/{name.name}, which changes"
        elif name.kind == "Pod":
            key = f"{name.namespace}/{name.name}"
            if _meant(comparison.old, statement, key) != _meant(comparison.new, statement, key):
                return f"it selects pods by labels, and those of {key} change"
    changed = frozenset(comparison.pairing.changed)
    sides = comparison.old, comparison.new
    if statement.include_future and any(not changed.isdisjoint(programs_of(side).network_refs) for side in sides):
        return "network policies change, which look at the labels of callers that do not exist yet"
    return None


def _meant(authority: Authority, statement: Statement, key: str) -> list[bool]:
    """Return whether each selector matches the labels of a pod, and whether each Service selects it."""
    world, destinations = authority.world, statement.destinations
    groups = statement.callers.of, statement.callers.without
    pairs = (destinations.pods, destinations.namespaces), *((group.pods, group.namespaces) for group in groups)
    workload = world.workloads.get(key)
    if workload is None:
        return [False for _ in (*pairs, *destinations.services)]
    home = world.namespace(workload.namespace).labels
    selected = [
        pods is not None and pods.matches(workload.labels) and (namespaces is None or namespaces.matches(home))
        for pods, namespaces in pairs
    ]
    return [*selected, *(service.key in world.services_of(key) for service in destinations.services)]


def changed_targets(comparison: AuthorityComparison) -> list[Target]:
    """Return the targets of the changed policies, and of the policies that refer to them."""
    changed = frozenset(comparison.pairing.changed)
    policies = (policy for side in (comparison.old, comparison.new) for policy in side.policies)
    return [
        target
        for policy in policies
        if policy.ref in changed or not changed.isdisjoint(policy.references)
        for target in policy.targets
    ]


def may_select(comparison: AuthorityComparison, statement: Statement, targets: Sequence[Target]) -> bool:
    """Return whether a change may matter to pods that do not exist yet and that a statement covers."""
    sides = comparison.old, comparison.new
    world = comparison.new.world
    covers = covers_of(statement, world)
    if not covers:
        return False
    changed = frozenset(comparison.pairing.changed)
    if any(ref in programs_of(side).network_refs for side in sides for ref in changed):
        return True
    objects = [name for name in differing_objects(*sides) if name.kind not in _ABOUT_EXISTING]
    if not all(name.kind in _IN_ITS_NAMESPACE for name in objects):
        return True
    in_use = frozenset(world.namespaces_in_use())

    def is_in_cover(namespace: str) -> bool:
        return any(cover.namespaces.matches(world.namespace(namespace).labels) for cover in covers)

    def is_covered(target: Target) -> bool:
        if isinstance(target, _ABOUT_NO_PODS):
            return False
        if not isinstance(target, _IN_A_NAMESPACE) or target.namespace not in in_use:
            return True
        return is_in_cover(target.namespace)

    if any(is_in_cover(name.namespace) for name in objects):
        return True
    return any(map(is_covered, targets))
