"""The points that a policy is attached to, by its `selector` or `targetRefs`, its namespace and the root namespace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from eastgate.cluster import (
    GATEWAY_GROUP,
    Everything,
    GatewayNamed,
    GatewaysMatching,
    PodsAcross,
    PodsMatching,
    PodsOfService,
    Selector,
    Target,
)
from eastgate.dialects.istio.model import PolicyTarget
from eastgate.reading.manifests.node import Node

WAYPOINT_CLASS: Final = "istio-waypoint"
_ALL_PODS: Final = PodsAcross(Selector.of(), Selector.of())


def read_selector(spec: Node | None) -> Selector:
    """Return the workload selector of a checked policy; without one, a selector of everything."""
    selector = spec.get("selector") if spec is not None else None
    labels = selector.get("matchLabels") if selector is not None else None
    return Selector.of({key: value.text for key, value in labels.items()} if labels is not None else {})


def read_refs(spec: Node | None) -> tuple[PolicyTarget, ...]:
    """Return the targets that a checked policy names, in the old field or the new one."""
    if spec is None:
        return ()
    old, refs = spec.get("targetRef"), spec.get("targetRefs")
    return tuple(_ref(node) for node in ([old] if old is not None else refs or ()))


def _ref(node: Node) -> PolicyTarget:
    group = node.get("group")
    named = "" if group is None or group.text == "core" else group.text
    return PolicyTarget(named, node["kind"].text, node["name"].text)


def targets_of(
    namespace: str, selector: Selector, refs: Sequence[PolicyTarget] = (), *, in_root: bool, gateways: bool = True
) -> tuple[Target, ...]:
    """Return the targets of a policy. With `gateways`, a selector of workloads also selects the pods of Gateways."""
    if refs:
        return tuple(target for ref in refs for target in _named(ref, namespace, in_root=in_root))
    pods: Target = PodsAcross(Selector.of(), selector) if in_root else PodsMatching(namespace, selector)
    return (pods, GatewaysMatching(None if in_root else namespace, selector)) if gateways else (pods,)


def _named(ref: PolicyTarget, namespace: str, *, in_root: bool) -> Iterator[Target]:
    """Yield the points of one target. A waypoint guards the pods of its Services."""
    target = target_of(ref, namespace)
    if target is not None:
        yield target
    if ref.group == GATEWAY_GROUP and (ref.kind == "Gateway" or (ref.kind == "GatewayClass" and in_root)):
        yield _ALL_PODS  # a waypoint guards all workloads that use it


def target_of(ref: PolicyTarget, namespace: str) -> Target | None:
    """Return the object that a target names, or None for a target of several objects or of an unknown kind."""
    match ref.group, ref.kind:
        case group, "Gateway" if group == GATEWAY_GROUP:
            return GatewayNamed(namespace, ref.name)
        case "", "Service":
            return PodsOfService(namespace, ref.name)
        case _:
            return None


def widened(target: Target, namespace: str, *, in_root: bool) -> Iterator[Target]:
    """Yield the possible targets of a policy with errors. In the root namespace, they are in all namespaces."""
    match target:
        case Everything(home) if in_root and home == namespace:
            yield Everything(None)
        case PodsMatching(home, selector) if in_root and home == namespace:
            yield PodsAcross(Selector.of(), selector)
        case GatewaysMatching(home, selector) if in_root and home == namespace:
            yield GatewaysMatching(None, selector)
        case GatewayNamed():
            yield target
            yield _ALL_PODS  # a waypoint guards all workloads that use it
        case _:
            yield target
