"""Closes what policies target that Istio cannot be told about: a DENY of everything goes before every ALLOW."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import (
    Everything,
    Operator,
    PodsAcross,
    PodsMatching,
    PodsOfService,
    Selector,
    Target,
)
from eastgate.convert.istio import GROUP, KIND, VERSION
from eastgate.convert.selectors import label_sets
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.native.converting import NativeObject, marked
from eastgate.native.model import Json
from eastgate.native.situation import Situation, Source

__all__ = ["closures", "pods_of"]


def closures(source: Source, situation: Situation) -> Iterator[NativeObject]:
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


def pods_of(target: Target, situation: Situation) -> Iterator[PodsMatching]:
    """Yield the pods that a policy of GEP-3779 targets, by namespace and labels, as far as this is known."""
    match target:
        case PodsMatching():
            yield target
        case PodsOfService(namespace, name):
            service = situation.world.services.get(f"{namespace}/{name}")
            if service is not None and service.selects_pods:
                yield PodsMatching(namespace, Selector.of(service.selector))
        case PodsAcross(namespaces, pods):
            for name in situation.namespaces:
                if namespaces.matches(situation.world.namespace(name).labels):
                    yield PodsMatching(name, pods)
        case Everything(namespace):
            for name in situation.namespaces if namespace is None else (namespace,):
                yield PodsMatching(name, Selector())
        case _:
            return


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
