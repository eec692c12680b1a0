"""The pods that policies of GEP-3779 target, by namespace and labels."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import Everything, PodsAcross, PodsMatching, PodsOfService, Selector, Target
from eastgate.convert.native.situation import Situation


def pods_of(target: Target, situation: Situation) -> Iterator[PodsMatching]:
    """Yield the pods that a policy of GEP-3779 targets, by namespace and labels, if they are known."""
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
