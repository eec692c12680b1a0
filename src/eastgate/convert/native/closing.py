"""Closes what policies target that Istio cannot be told about: a DENY of everything goes before every ALLOW."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster import Operator, Selector
from eastgate.convert.istio import GROUP, KIND, VERSION
from eastgate.convert.native.converting import NativeObject, marked
from eastgate.convert.native.model import Json, NativeMesh
from eastgate.convert.native.situation import Situation, SourcePolicy
from eastgate.convert.native.targets import pods_of
from eastgate.convert.selectors import label_sets
from eastgate.dialects.istio.settings import IstioSettings


def closures(source: SourcePolicy, situation: Situation) -> Iterator[NativeObject]:
    """Yield policies of Istio by which nobody reaches the pods that a policy targets.

    Where Istio cannot select exactly these pods, more of their namespace are closed. In the root namespace nothing can
    be closed alone.
    """
    root = situation.settings.section(IstioSettings).root_namespace
    seen: list[tuple[str, dict[str, str]]] = []
    for target in source.closing.targets:
        for pods in pods_of(target, situation):
            for labels in label_sets(pods.selector) or label_sets(_relaxed(pods.selector)) or ():
                if pods.namespace != root and (pods.namespace, labels) not in seen:
                    seen.append((pods.namespace, labels))
                    yield marked(_deny_all(labels), pods.namespace, [source.owner], situation)


def closes_exactly(source: SourcePolicy, situation: Situation) -> bool:
    """Return whether Istio can select exactly the pods that a policy targets."""
    targeted = (pods for target in source.closing.targets for pods in pods_of(target, situation))
    return all(label_sets(pods.selector) is not None for pods in targeted)


def is_out_of_reach(members: Sequence[str], situation: Situation) -> bool:
    """Return whether nothing can be closed: a policy of Istio in the root namespace would be for all namespaces."""
    root = situation.settings.section(IstioSettings).root_namespace
    return situation.mesh is NativeMesh.ISTIO and all(member.partition("/")[0] == root for member in members)


def _relaxed(selector: Selector) -> Selector:
    """Return a selector of the labels with values alone, which selects no less."""
    by_value = (expression for expression in selector.expressions if expression.operator is Operator.IN)
    few = Selector(selector.match_labels, frozenset(by_value))
    return few if label_sets(few) is not None else Selector(selector.match_labels)


def _deny_all(labels: dict[str, str]) -> Json:
    target: Json = {"selector": {"matchLabels": labels}} if labels else {}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "spec": {**target, "action": "DENY", "rules": [{}]},
    }
