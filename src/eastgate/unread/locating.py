"""Where an object acts that nobody understands: as much as can be read of its target, and never less.

What cannot be read of a target widens it: to all of its namespace, or to all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from eastgate.cluster import (
    BackendNamed,
    Everything,
    GatewayNamed,
    Operator,
    PodsAcross,
    PodsMatching,
    PodsOfService,
    Requirement,
    RouteNamed,
    Selector,
    Target,
    is_added_label,
)
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.manifests import Document
from eastgate.unread.model import By, Reach, Unread, UnreadKind

__all__ = ["content_of", "located", "referred_to", "selector_in", "unread"]

ISTIO_ROOT = "istio-system"  # policies in there are about all namespaces
_REF = frozenset({"group", "kind", "name", "namespace", "port", "sectionName", "selector"})
_ROUTES = frozenset({"GRPCRoute", "HTTPRoute", "TCPRoute", "TLSRoute", "UDPRoute"})
_FOREIGN = ("io.cilium.", "io.kubernetes.", "reserved:", "cidr:", "k8s.", "any.")  # Cilium's own, or of either meaning

Content = Mapping[str, object]


def unread(kind: UnreadKind, document: Document) -> Unread:
    """The object that a document of an unread kind describes."""
    try:
        return Unread(kind, _LOCATING[kind.by](document, content_of(document)), document)
    except _Unreadable:
        where = (Everything(_home(kind, document)),)
        return Unread(kind, Reach(where, where, located=False), document)


def _home(kind: UnreadKind, document: Document) -> str | None:
    """The namespace that an object of this kind stays in; None where it may reach out of it."""
    if kind.by in (By.SELECTOR, By.WORKLOAD_SELECTOR, By.SUBJECT) or "Cluster" in kind.kind:
        return None
    return document.home


def content_of(document: Document) -> Content:
    """The `spec` of a document, as plain data; empty where it has none."""
    data = document.data
    if data is None and document.node is not None:
        plain = document.node.plain()
        data = plain if isinstance(plain, dict) else None
    spec = data.get("spec") if data is not None else None
    return spec if isinstance(spec, dict) else {}


class _Unreadable(Exception):  # noqa: N818 - says what it is
    """A part of a target that cannot be read."""


# Selectors


def selector_in(content: Content, key: str) -> Selector | None:
    """A label selector; the empty one where there is none, and None where it cannot be read."""
    try:
        return _selector(content, key)
    except _Unreadable:
        return None


def _label(key: str) -> str | None:
    """The label that a key stands for, where manifests show it: not what controllers and injectors add to pods."""
    return None if is_added_label(key) else key


def _selector(content: Content, key: str, name: Callable[[str], str | None] = _label) -> Selector:
    """`name` gives the label that a key stands for; terms on keys that stand for none are left out, which widens."""
    written = content.get(key)
    if written is None:
        return Selector.of()
    if not isinstance(written, dict) or written.keys() - {"matchLabels", "matchExpressions"}:
        raise _Unreadable
    labels, expressions = _strings(written.get("matchLabels")), written.get("matchExpressions")
    if not isinstance(expressions, list | None):
        raise _Unreadable
    named = {found: value for label, value in labels.items() if (found := name(label)) is not None}
    terms = [_requirement(one) for one in expressions or ()]
    kept = (Requirement(found, one.operator, one.values) for one in terms if (found := name(one.key)) is not None)
    return Selector.of(named, kept)


def _strings(written: object) -> dict[str, str]:
    if written is None:
        return {}
    if not isinstance(written, dict) or not all(isinstance(one, str) for one in written.values()):
        raise _Unreadable
    return written


def _requirement(written: object) -> Requirement:
    if not isinstance(written, dict) or written.keys() - {"key", "operator", "values"}:
        raise _Unreadable
    key, operator, values = written.get("key"), written.get("operator"), written.get("values") or []
    if not isinstance(key, str) or not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise _Unreadable
    if operator not in list(Operator) or bool(values) is not (operator in (Operator.IN, Operator.NOT_IN)):
        raise _Unreadable
    return Requirement(key, Operator(str(operator)), frozenset(values))


def _cilium_label(key: str) -> str | None:
    """Cilium writes where a label comes from before it, and has labels of its own."""
    for source in ("k8s:", "any:"):
        key = key.removeprefix(source)
    return None if key.startswith(_FOREIGN) or ":" in key else _label(key)


# References


def referred_to(document: Document, content: Content) -> tuple[Target, ...] | None:
    """What `targetRefs` or `targetRef` name; None where there are none, or where one cannot be read."""
    written = content.get("targetRefs", content.get("targetRef"))
    refs = written if isinstance(written, list) else [written]
    if not refs or content.get("targetSelectors"):
        return None
    found: list[Target] = []
    for ref in refs:
        if not isinstance(ref, dict) or ref.keys() - _REF:
            return None
        targets = list(_referred(document, ref))
        if not targets:
            return None
        found += targets
    return tuple(found)


def _referred(document: Document, ref: Content) -> Iterator[Target]:
    kind, name, elsewhere = ref.get("kind"), ref.get("name"), ref.get("namespace")
    own = document.home
    for namespace in dict.fromkeys([own, *([elsewhere] if isinstance(elsewhere, str) else [])]):
        selector = selector_in(ref, "selector")
        if kind == "Pod" and name is None and selector is not None:
            yield PodsMatching(namespace, selector)
        elif not isinstance(name, str) or ref.get("selector") is not None:
            return
        elif kind == "Service":
            yield PodsOfService(namespace, name)
        elif kind == "Gateway":
            yield GatewayNamed(namespace, name)
        elif kind in _ROUTES:
            yield RouteNamed(namespace, name)
        elif kind in BACKEND_KINDS:
            yield BackendNamed(namespace, name)


# One for each way of naming a target


def _by_pod_selector(document: Document, content: Content) -> Reach:
    pods = (PodsMatching(document.home, _selector(content, "podSelector")),)
    types = content.get("policyTypes")
    if types is None or types == []:
        ingress, egress = True, bool(content.get("egress"))
    elif isinstance(types, list):
        ingress, egress = "Ingress" in types, "Egress" in types
    else:
        raise _Unreadable
    if not ingress and not egress:
        raise _Unreadable
    return Reach(pods if ingress else (), pods if egress else ())


def _by_endpoint_selector(document: Document, content: Content) -> Reach:
    """Cilium's: one `spec` or several `specs`; a policy of the whole cluster has no namespace."""
    node = document.data if document.data is not None else None
    several = node.get("specs") if node is not None else None
    if several is not None and not isinstance(several, list):
        raise _Unreadable
    rules = [*([content] if content else []), *(several or ())]
    found: list[Target] = []
    for rule in rules:
        if not isinstance(rule, dict):
            raise _Unreadable
        if rule.get("nodeSelector") is not None:
            found.append(Everything(None))  # whatever runs on those nodes
            continue
        pods = _selector(rule, "endpointSelector", _cilium_label)
        if "Clusterwide" in document.kind:
            found.append(PodsAcross(Selector.of(), pods))
        else:
            found.append(PodsMatching(document.home, pods))
    if not found:
        raise _Unreadable
    return Reach(tuple(found), tuple(found))


def _by_subject(_document: Document, content: Content) -> Reach:
    subject = content.get("subject")
    if not isinstance(subject, dict) or len(subject) != 1:
        raise _Unreadable
    if "namespaces" in subject:
        target = PodsAcross(_selector(subject, "namespaces"), Selector.of())
    else:
        pods = subject.get("pods")
        if not isinstance(pods, dict) or pods.keys() - {"namespaceSelector", "podSelector"}:
            raise _Unreadable
        target = PodsAcross(_selector(pods, "namespaceSelector"), _selector(pods, "podSelector"))
    return Reach((target,), (target,))


def _by_selector(document: Document, content: Content) -> Reach:
    """Istio's: labels, or references; neither in the root namespace is all namespaces. Waypoints serve any of them."""
    if "targetRefs" in content or "targetRef" in content:
        return Reach(_through_waypoints(document, content))
    return Reach((_labelled(document, content.get("selector"), "matchLabels"),))


def _by_workload_selector(document: Document, content: Content) -> Reach:
    """Istio's, for what configures proxies: of callers as well."""
    if "targetRefs" in content:
        found = _through_waypoints(document, content)
        return Reach(found, found)
    target = _labelled(document, content.get("workloadSelector"), "labels")
    return Reach((target,), (target,))


def _through_waypoints(document: Document, content: Content) -> tuple[Target, ...]:
    found = referred_to(document, content)
    if found is None:
        raise _Unreadable
    return (Everything(None),) if any(isinstance(one, GatewayNamed) for one in found) else found


def _labelled(document: Document, selector: object, key: str) -> Target:
    if selector is not None and (not isinstance(selector, dict) or selector.keys() - {key}):
        raise _Unreadable
    written = _strings(selector.get(key) if isinstance(selector, dict) else None)
    labels = Selector.of({label: value for label, value in written.items() if _label(label) is not None})
    namespace = document.home
    if namespace == ISTIO_ROOT:
        return PodsAcross(Selector.of(), labels) if labels.match_labels else Everything(None)
    return PodsMatching(namespace, labels) if labels.match_labels else Everything(namespace)


def _by_target_refs(document: Document, content: Content) -> Reach:
    found = referred_to(document, content)
    if found is None:
        raise _Unreadable
    return Reach(found)


def _by_namespace(document: Document, _content: Content) -> Reach:
    found = (Everything(document.home),)
    return Reach(found, found)


def _by_cluster(_document: Document, _content: Content) -> Reach:
    found = (Everything(None),)
    return Reach(found, found)


def _unknown(_document: Document, _content: Content) -> Reach:
    """Nobody can tell what it is about, nor from where its target is named."""
    return Reach((Everything(None),), (Everything(None),), located=False)


_LOCATING: Mapping[By, Callable[[Document, Content], Reach]] = {
    By.POD_SELECTOR: _by_pod_selector,
    By.ENDPOINT_SELECTOR: _by_endpoint_selector,
    By.SUBJECT: _by_subject,
    By.SELECTOR: _by_selector,
    By.WORKLOAD_SELECTOR: _by_workload_selector,
    By.TARGET_REFS: _by_target_refs,
    By.NAMESPACE: _by_namespace,
    By.CLUSTER: _by_cluster,
    By.UNKNOWN: _unknown,
}


def located(document: Document, *, cluster_scoped: bool) -> tuple[Target, ...]:
    """What a policy with errors is about, as far as that can be read; otherwise its namespace, or all there is."""
    content = content_of(document)
    if cluster_scoped:
        try:
            subject = content.get("subject")
            if not isinstance(subject, dict) or subject.keys() - {"namespaceSelector", "podSelector"}:
                raise _Unreadable
            return (PodsAcross(_selector(subject, "namespaceSelector"), _selector(subject, "podSelector")),)
        except _Unreadable:
            return (Everything(None),)
    return referred_to(document, content) or (Everything(document.home),)
