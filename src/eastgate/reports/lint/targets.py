"""Targets that do not exist, or select nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import assert_never

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import (
    BackendNamed,
    Everything,
    ExternalsMatching,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    RouteNamed,
    RulesOfGateway,
    RulesOfRoute,
    Selector,
    Target,
)
from eastgate.dialects.linting import Finding, codes, enumerated
from eastgate.dialects.linting.nearest import nearest_name
from eastgate.dialects.linting.system import selects_system_pods
from eastgate.dialects.linting.targets import missing_target, target_span
from eastgate.ir import PolicyRef
from eastgate.reports.lint.hooks import statements_of
from eastgate.reports.lint.inventory import Policy, PolicyInventory
from eastgate.reports.lint.labels import Selecting, find_misspelt_labels, suggest_labels
from eastgate.settings import Sidecars


def find_unenforced(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report policies on pods that no proxy of Eastgate guards, or none is certain to."""
    if inventory.settings.sidecars is Sidecars.ASSUMED:
        return
    pods: dict[tuple[PolicyRef, bool, str, tuple[int, ...]], list[str]] = {}
    for key in inventory.world.workloads:
        for each in inventory.authority.enforcement_at(key):
            is_open = each.by is None or (not each.certain and not inventory.workload(key).derived)
            for ref in each.policies if is_open and each.setting == "sidecars" else ():
                pods.setdefault((ref, each.certain, each.why, each.ports), []).append(key)
    for (ref, certain, why, ports), keys in sorted(pods.items()):
        does = "nothing enforces" if certain else "it is not certain that a proxy enforces"
        message = f"{does} {ref} on {enumerated(keys)}: {why}"
        inject = "label the namespace eastgate.dev/injection: enabled and create the pods again, or do not select them"
        help_ = "take the ports out of the annotation, and create the pods again" if ports else inject
        yield Finding(codes.NOT_ENFORCED, message, inventory.by_ref[ref].span, help_, (str(ref), *keys))


def find_empty_targets(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report every target that does not exist or selects nothing."""
    for policy in inventory.policies:
        statements = statements_of(policy)
        for number, target in enumerate(statements.targets):
            yield from _target(_Field(policy, statements.target_field, number), target, inventory)


@dataclass(frozen=True, slots=True)
class _Field:
    """The field of a policy's spec that holds a target, and its index where that is a list."""

    policy: Policy
    name: str
    number: int

    def span(self, name: str = "") -> Span | None:
        """Find the name of the target, or what selects it."""
        return target_span(self.policy, self.name, self.number, name)


def _target(field: _Field, target: Target, inventory: PolicyInventory) -> Iterator[Finding]:
    world = inventory.world
    match target:
        case PodsOfService(namespace, name) if f"{namespace}/{name}" not in world.services:
            yield from _missing(field, "Service", namespace, name, world.services)
        case GatewayNamed(namespace, name) if f"{namespace}/{name}" not in world.gateways:
            yield from _missing(field, "Gateway", namespace, name, world.gateways)
        case BackendNamed(namespace, name) if f"{namespace}/{name}" not in world.backends:
            yield from _missing(field, "Backend", namespace, name, world.backends)
        case PodsOwnedBy() | PodsOfAccount() | PodNamed() if not world.select(target):
            if inventory.workloads_in.get(target.namespace):
                yield _no_workload(field, target, inventory)
        case PodsMatching() | PodsAcross() | PodsOfService() | ExternalsMatching():
            if not world.select(target):
                yield from _nothing(field, target, inventory)
            else:
                yield from find_misspelt_labels(field.policy, target, inventory)
        case GatewayNamed() | BackendNamed() | PodsOwnedBy() | PodsOfAccount() | PodNamed():
            pass  # it exists
        case RouteNamed() | Everything() | GatewaysMatching() | RulesOfGateway() | RulesOfRoute() | HostNamed():
            pass  # dialects whose policies target routes check them
        case _:
            assert_never(target)


def _missing(field: _Field, kind: str, namespace: str, name: str, declared: Collection[str]) -> Iterator[Finding]:
    """Report a target that is not there; manifests that declare none of its kind leave them to others."""
    if declared:
        yield missing_target(field.policy, field.span(name), kind, namespace, name, declared)


def _no_workload(field: _Field, target: PodsOwnedBy | PodsOfAccount | PodNamed, inventory: PolicyInventory) -> Finding:
    policy, world = field.policy, inventory.world
    match target:
        case PodsOwnedBy(namespace, kind, name):
            workloads = [w for w in world.workloads.values() if w.namespace == namespace]
            names = {owner.name for w in workloads for owner in w.owners if owner.kind == kind}
        case PodsOfAccount(namespace, name):
            kind, names = "ServiceAccount", inventory.accounts.get(namespace, set())
        case PodNamed(namespace, name):
            kind = "Pod"
            names = {w.name for w in world.workloads.values() if w.namespace == namespace and not w.derived}
    message = f"{policy.ref} targets {kind} {namespace}/{name}, and no workload is of it"
    close = nearest_name(name, names - {name})
    help_ = f"did you mean {close}?" if close else f"declare {kind} {namespace}/{name}, or name another"
    return Finding(codes.NO_SUCH_TARGET, message, field.span(name), help_, (str(policy.ref),))


def _nothing(field: _Field, target: Selecting, inventory: PolicyInventory) -> Iterator[Finding]:
    if _is_elsewhere(target, inventory):
        return
    policy = field.policy
    help_ = suggest_labels(target, inventory) or "change the target, or remove the policy"
    message = f"{policy.ref} selects nothing: there are no {target}"
    name = target.service if isinstance(target, PodsOfService) else ""
    yield Finding(codes.SELECTS_NOTHING, message, field.span(name), help_, (str(policy.ref),))


def _is_elsewhere(target: Selecting, inventory: PolicyInventory) -> bool:
    """Return whether the workloads of a target are in other manifests: of the cluster itself, of a gateway, or here its
    namespace has none at all.
    """
    world = inventory.world
    if not world.workloads:
        return True
    match target:
        case PodsMatching(namespace, selector):
            has_none = not inventory.workloads_in.get(namespace)
        case PodsAcross(_, selector):
            has_none = False
        case _:
            return False
    gateways = (gateway.selector for gateway in world.mesh_gateways.values())
    if selects_system_pods(selector) or any(selector == Selector.of(labels) for labels in gateways):
        return True
    return has_none and (selector == Selector.of() or not world.select(PodsAcross(Selector.of(), selector)))
