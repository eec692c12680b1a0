"""Targets that do not exist, or that select nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias, assert_never

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import (
    BackendNamed,
    Everything,
    ExternalsMatching,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    Operator,
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
    Workload,
)
from eastgate.dialects.linting import Finding, codes, enumerated, locating
from eastgate.dialects.linting.context import may_come
from eastgate.dialects.linting.locating import corrected_name, list_some, missing_target, nearest_name, target_span
from eastgate.dialects.linting.system import (
    intended_label,
    is_system_namespace,
    selects_system_namespace,
    selects_system_pods,
)
from eastgate.ir import PolicyRef
from eastgate.reports.lint.inventory import Labels, Policy, PolicyInventory, collect_labels, statements_of
from eastgate.settings import Sidecars

# Labels in selectors that no workload has, and suggestions for them.


Selecting: TypeAlias = PodsMatching | PodsAcross | PodsOfService | ExternalsMatching  # targets that select by labels


def suggest_labels(target: Selecting, inventory: PolicyInventory) -> str | None:
    """Suggest labels for a selector that selects nothing."""
    match target:
        case PodsMatching(namespace, selector):
            labels = inventory.labels_in(namespace)
            if not inventory.workloads_in.get(namespace):
                keys = sorted(inventory.world.select(PodsAcross(Selector.of(), selector)))
                return f"there are some in another namespace: {enumerated(keys)}; a policy is beside its workloads"
            return _suggestion(selector, labels)
        case PodsAcross(namespaces, pods):
            spaces = collect_labels(
                inventory.world.namespace(name).labels for name in inventory.world.namespaces_in_use()
            )
            return _suggestion(namespaces, spaces) or _suggestion(pods, _labels_of(inventory.world.workloads.values()))
        case PodsOfService(namespace, name):
            service = inventory.world.services[f"{namespace}/{name}"]
            close = _suggestion(Selector.of(service.selector), inventory.labels_in(namespace))
            return f"the Service selects {Selector.of(service.selector)}" + (f"; {close}" if close else "")
        case ExternalsMatching(namespace, selector):
            others = (w for w in inventory.world.workloads.values() if not w.is_pod and w.namespace == namespace)
            return _suggestion(selector, _labels_of(others))


def find_misspelt_labels(policy: Policy, target: Selecting, inventory: PolicyInventory) -> Iterator[Finding]:
    """Report values of a selector that no object has as a label, but that resemble an existing one."""
    if not isinstance(target, PodsMatching) or not target.selector.expressions:
        return
    selector = target.selector
    labels: Labels | None = None
    for requirement in sorted(selector.expressions, key=str):
        labels = labels or inventory.labels_in(target.namespace)
        if requirement.operator in (Operator.IN, Operator.NOT_IN):
            for value in sorted(requirement.values - labels.get(requirement.key, set())):
                close = corrected_name(value, labels.get(requirement.key, set()) - requirement.values)
                if close is not None:
                    message = f"no workload has the label {requirement.key}: {value}, and some have {close}"
                    span = locating.scalar(policy.span, None, [value])
                    yield Finding(codes.TYPO, message, span, f"did you mean {close}?", (str(policy.ref),))
        if requirement.key not in labels and requirement.operator is not Operator.EXISTS:
            close = corrected_name(requirement.key, labels)
            if close is not None:
                message = f"no workload has a label {requirement.key}, and some have {close}"
                span = locating.scalar(policy.span, None, [requirement.key])
                yield Finding(codes.TYPO, message, span, f"did you mean {close}?", (str(policy.ref),))


def _suggestion(selector: Selector, labels: Labels) -> str | None:
    for key, value in selector.equalities:
        if key not in labels:
            close = nearest_name(key, labels)
            if close is not None:
                return f"no label is called {key}; did you mean {close}?"
        elif value not in labels[key]:
            close = nearest_name(value, labels[key])
            if close is not None:
                return f"nothing is labelled {key}: {value}; did you mean {key}: {close}?"
            return f"the values of {key} are {list_some(labels[key])}"
    return None


def _labels_of(workloads: Iterable[Workload]) -> Labels:
    return collect_labels(workload.labels for workload in workloads)


def find_unenforced(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report policies on pods that no Eastgate proxy is certain to protect."""
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
    """The field of a policy's spec with a target, and the index of the target in a list."""

    policy: Policy
    name: str
    number: int

    def span(self, name: str = "") -> Span | None:
        """Find the name of the target, or its selector."""
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
            pass  # the target exists
        case RouteNamed() | Everything() | GatewaysMatching() | RulesOfGateway() | RulesOfRoute() | HostNamed():
            pass  # checked by dialects whose policies target routes
        case _:
            assert_never(target)


def _missing(field: _Field, kind: str, namespace: str, name: str, declared: Collection[str]) -> Iterator[Finding]:
    """Report a target that does not exist.

    If the manifests declare no object of its kind, it may be declared elsewhere.
    """
    is_system = is_system_namespace(namespace) and not any(key.startswith(f"{namespace}/") for key in declared)
    if declared and not is_system:
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
    message = f"{policy.ref} targets {kind} {namespace}/{name}, and no workload belongs to it"
    close = nearest_name(name, names - {name})
    help_ = f"did you mean {close}?" if close else f"declare {kind} {namespace}/{name}, or name another"
    return Finding(codes.NO_SUCH_TARGET, message, field.span(name), help_, (str(policy.ref),))


def _nothing(field: _Field, target: Selecting, inventory: PolicyInventory) -> Iterator[Finding]:
    intended = _intended(target)
    if intended is None and (_is_elsewhere(target, inventory) or _may_come(target, inventory)):
        return
    policy = field.policy
    help_ = intended or suggest_labels(target, inventory) or "change the target, or remove the policy"
    message = f"{policy.ref} selects nothing: there are no {target}"
    name = target.service if isinstance(target, PodsOfService) else ""
    yield Finding(codes.SELECTS_NOTHING, message, field.span(name), help_, (str(policy.ref),))


def _may_come(target: Selecting, inventory: PolicyInventory) -> bool:
    """Return whether pods of a target may appear without a manifest."""
    world = inventory.world
    match target:
        case PodsMatching(namespace, selector):
            return may_come(selector, {namespace}, inventory)
        case PodsAcross(namespaces, selector):
            homes = (name for name in world.namespaces_in_use() if namespaces.matches(world.namespace(name).labels))
            return may_come(selector, {*homes}, inventory)
        case PodsOfService(namespace, name):
            return may_come(Selector.of(world.services[f"{namespace}/{name}"].selector), {namespace}, inventory)
        case ExternalsMatching():
            return False


def _intended(target: Selecting) -> str | None:
    """Suggest the label of a pod of the cluster itself that a target may misspell, in a namespace of the cluster."""
    match target:
        case PodsMatching(namespace, selector) if is_system_namespace(namespace):
            intended = intended_label(selector)
        case PodsAcross(namespaces, selector) if selects_system_namespace(namespaces):
            intended = intended_label(selector)
        case _:
            return None
    return f"did you mean {intended[0]}: {intended[2]}?" if intended is not None else None


def _is_elsewhere(target: Selecting, inventory: PolicyInventory) -> bool:
    """Return whether the workloads of a target may be in other manifests: pods of the cluster itself, of a gateway, or
    of a namespace without any workload here.
    """
    world = inventory.world
    if not world.workloads:
        return True
    match target:
        case PodsMatching(namespace, selector):
            has_none = not inventory.workloads_in.get(namespace)
        case PodsAcross(namespaces, selector):
            has_none = False
            if selects_system_namespace(namespaces) and not world.select(PodsAcross(namespaces, Selector.of())):
                return True
        case _:
            return False
    gateways = (gateway.selector for gateway in world.mesh_gateways.values())
    if selects_system_pods(selector) or any(selector == Selector.of(labels) for labels in gateways):
        return True
    return has_none and (selector == Selector.of() or not world.select(PodsAcross(Selector.of(), selector)))
