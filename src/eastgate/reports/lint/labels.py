"""Labels in selectors that no workload has, and those that were probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from eastgate.cluster import (
    ExternalsMatching,
    Operator,
    PodsAcross,
    PodsMatching,
    PodsOfService,
    Selector,
    Workload,
)
from eastgate.dialects.linting import Finding, codes, enumerated, locating
from eastgate.dialects.linting.nearest import corrected_name, list_some, nearest_name
from eastgate.reports.lint.inventory import Labels, Policy, PolicyInventory, collect_labels

Selecting: TypeAlias = PodsMatching | PodsAcross | PodsOfService | ExternalsMatching  # by labels


def suggest_labels(target: Selecting, inventory: PolicyInventory) -> str | None:
    """Suggest the labels that a selector which selects nothing was most likely meant to have."""
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
    """Report values of a selector that no label has, and that resemble one which some label has."""
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
