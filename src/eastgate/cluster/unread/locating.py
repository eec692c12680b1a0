"""Locates where an object of an unread kind acts, from the readable parts of its target.

An unreadable part widens the target: to all of its namespace, or to the whole cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

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
from eastgate.cluster.objects import NAME_LABEL
from eastgate.cluster.unread.calico import calico_selector
from eastgate.cluster.unread.model import EnforcementPlane, TargetField, Unread, UnreadEffect, UnreadKind, UnreadTargets
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.document import content_of as whole_content_of
from eastgate.reading.manifests.rendered import UnlistedKind

_ISTIO_ROOT = "istio-system"  # policies in this namespace are about all namespaces
_REF = frozenset({"group", "kind", "name", "namespace", "port", "sectionName", "selector"})
_ROUTES = frozenset({"GRPCRoute", "HTTPRoute", "TCPRoute", "TLSRoute", "UDPRoute"})
_CILIUM_LABELS = (
    "io.cilium.",
    "io.kubernetes.",
    "reserved:",
    "cidr:",
    "k8s.",
    "any.",
)  # Cilium's own labels, or ambiguous
_WIDE = frozenset({TargetField.SELECTOR, TargetField.WORKLOAD_SELECTOR, TargetField.SUBJECT, TargetField.MEMBERS})

Content = Mapping[str, object]


def unread_object(kind: UnreadKind, document: Document) -> Unread:
    """Return the object that a document of an unread kind describes."""
    try:
        return Unread(kind, _LOCATING[kind.target_field](document, content_of(document)), document)
    except _Unreadable:
        where = (Everything(_home(kind, document)),)
        return Unread(kind, UnreadTargets(where, where, located=False), document)


def unlisted_objects(document: Document, origin: UnlistedKind) -> Unread:
    """Return one object in place of those of a kind that were not listed: their content is unknown.

    If those of one namespace were listed, an answer is about the objects that were read.
    """
    kind = UnreadKind(
        document.group, document.kind, UnreadEffect.CHANGE, EnforcementPlane.MESH, TargetField.CLUSTER, origin.reason
    )
    everywhere = (Everything(None),)
    return Unread(kind, UnreadTargets(everywhere, everywhere, located=origin.beyond is not None), document)


def _home(kind: UnreadKind, document: Document) -> str | None:
    """Return the namespace to which an object of this kind is limited; None if it may act outside."""
    is_wide = "Cluster" in kind.kind or "Global" in kind.kind or kind.target_field in _WIDE
    return None if is_wide else document.home


def content_of(document: Document) -> Content:
    """Return the `spec` of a document, as plain data; empty if it has none."""
    data = whole_content_of(document)
    spec = data.get("spec") if isinstance(data, dict) else None
    return spec if isinstance(spec, dict) else {}


class _Unreadable(Exception):  # noqa: N818 - the name is a property
    """A part of a target that cannot be read."""


# Selectors


def selector_in(content: Content, key: str) -> Selector | None:
    """Return a label selector; an empty selector if the field is absent, and None if it is unreadable."""
    try:
        return _selector(content, key)
    except _Unreadable:
        return None


def _label(key: str) -> str | None:
    """Return the label of a key, if manifests show it; None for labels that controllers and injectors add to pods."""
    return None if is_added_label(key) else key


def _selector(content: Content, key: str, name: Callable[[str], str | None] = _label) -> Selector:
    """Return a selector. `name` returns the label of a key; terms without a label are left out, which widens it."""
    selector = content.get(key)
    if selector is None:
        return Selector.of()
    if not isinstance(selector, dict) or selector.keys() - {"matchLabels", "matchExpressions"}:
        raise _Unreadable
    labels, expressions = _strings(selector.get("matchLabels")), selector.get("matchExpressions")
    if not isinstance(expressions, list | None):
        raise _Unreadable
    equal = {label: value for key, value in labels.items() if (label := name(key)) is not None}
    terms = [_requirement(expression) for expression in expressions or ()]
    kept = (Requirement(label, term.operator, term.values) for term in terms if (label := name(term.key)) is not None)
    return Selector.of(equal, kept)


def _strings(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise _Unreadable
    return value


def _requirement(value: object) -> Requirement:
    if not isinstance(value, dict) or value.keys() - {"key", "operator", "values"}:
        raise _Unreadable
    key, operator, values = value.get("key"), value.get("operator"), value.get("values") or []
    if not isinstance(key, str) or not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        raise _Unreadable
    if operator not in list(Operator) or bool(values) is not (operator in (Operator.IN, Operator.NOT_IN)):
        raise _Unreadable
    return Requirement(key, Operator(str(operator)), frozenset(values))


def _cilium_label(key: str) -> str | None:
    """Return the label of a key of Cilium, which has the source of a label as prefix, and some labels of its own."""
    for source in ("k8s:", "any:"):
        key = key.removeprefix(source)
    return None if key.startswith(_CILIUM_LABELS) or ":" in key else _label(key)


# References


def referred_to(document: Document, content: Content) -> tuple[Target, ...] | None:
    """Return the targets in `targetRefs` or `targetRef`; None if there are none, or if one is unreadable."""
    value = content.get("targetRefs", content.get("targetRef"))
    refs = value if isinstance(value, list) else [value]
    if not refs or content.get("targetSelectors"):
        return None
    targets: list[Target] = []
    for ref in refs:
        if not isinstance(ref, dict) or ref.keys() - _REF:
            return None
        referred = list(_referred(document, ref))
        if not referred:
            return None
        targets += referred
    return tuple(targets)


def _referred(document: Document, ref: Content) -> Iterator[Target]:
    kind, name, elsewhere = ref.get("kind"), ref.get("name"), ref.get("namespace")
    if not isinstance(kind, str) or not isinstance(elsewhere, str | None):
        return
    own = document.home
    for namespace in dict.fromkeys([own, *([elsewhere] if elsewhere is not None else [])]):
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
            yield RouteNamed(namespace, name, kind)
        elif kind in BACKEND_KINDS:
            yield BackendNamed(namespace, name)


# One function for each way to name a target


def _by_pod_selector(document: Document, content: Content) -> UnreadTargets:
    pods = (PodsMatching(document.home, _selector(content, "podSelector")),)
    return _by_types(pods, content.get("policyTypes"), ("Ingress", "Egress") if content.get("egress") else ("Ingress",))


def _by_types(targets: tuple[Target, ...], types: object, default: Sequence[str]) -> UnreadTargets:
    """Return the targets at the ends that the types of a policy name; `default` is for a policy without types."""
    named = default if types is None or types == [] else types
    if not isinstance(named, list | tuple):
        raise _Unreadable
    ingress, egress = "Ingress" in named, "Egress" in named
    if not ingress and not egress:
        raise _Unreadable
    return UnreadTargets(targets if ingress else (), targets if egress else ())


def _by_endpoint_selector(document: Document, content: Content) -> UnreadTargets:
    """Read Cilium's targets: one `spec` or several `specs`; a policy for the whole cluster has no namespace."""
    node = document.data if document.data is not None else None
    several = node.get("specs") if node is not None else None
    if several is not None and not isinstance(several, list):
        raise _Unreadable
    rules = [*([content] if content else []), *(several or ())]
    targets: list[Target] = []
    for rule in rules:
        if not isinstance(rule, dict):
            raise _Unreadable
        if rule.get("nodeSelector") is not None:
            targets.append(Everything(None))  # all workloads on those nodes
            continue
        pods = _selector(rule, "endpointSelector", _cilium_label)
        if "Clusterwide" in document.kind:
            targets.append(PodsAcross(Selector.of(), pods))
        else:
            targets.append(PodsMatching(document.home, pods))
    if not targets:
        raise _Unreadable
    return UnreadTargets(tuple(targets), tuple(targets))


def _by_subject(_document: Document, content: Content) -> UnreadTargets:
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
    return UnreadTargets((target,), (target,))


def _by_selector(document: Document, content: Content) -> UnreadTargets:
    """Read Istio's targets: labels, or references. Without both, a policy in the root namespace is about all
    namespaces.

    A reference to a waypoint is about all namespaces, since a waypoint serves any namespace.
    """
    if "targetRefs" in content or "targetRef" in content:
        return UnreadTargets(_through_waypoints(document, content))
    return UnreadTargets((_labelled(document, content.get("selector"), "matchLabels"),))


def _by_workload_selector(document: Document, content: Content) -> UnreadTargets:
    """Read the targets of Istio's proxy configuration, which applies to the proxies of callers as well."""
    if "targetRefs" in content:
        targets = _through_waypoints(document, content)
        return UnreadTargets(targets, targets)
    target = _labelled(document, content.get("workloadSelector"), "labels")
    return UnreadTargets((target,), (target,))


def _through_waypoints(document: Document, content: Content) -> tuple[Target, ...]:
    targets = referred_to(document, content)
    if targets is None:
        raise _Unreadable
    return (Everything(None),) if any(isinstance(target, GatewayNamed) for target in targets) else targets


def _labelled(document: Document, selector: object, key: str) -> Target:
    if selector is not None and (not isinstance(selector, dict) or selector.keys() - {key}):
        raise _Unreadable
    texts = _strings(selector.get(key) if isinstance(selector, dict) else None)
    labels = Selector.of({label: value for label, value in texts.items() if _label(label) is not None})
    namespace = document.home
    if namespace == _ISTIO_ROOT:
        return PodsAcross(Selector.of(), labels) if labels.match_labels else Everything(None)
    return PodsMatching(namespace, labels) if labels.match_labels else Everything(namespace)


def _by_target_refs(document: Document, content: Content) -> UnreadTargets:
    targets = referred_to(document, content)
    if targets is None:
        raise _Unreadable
    return UnreadTargets(targets)


def _by_calico(document: Document, content: Content) -> UnreadTargets:
    """Read Calico's targets: expressions for pods and, in global policies, for namespaces."""
    pods = calico_selector(_expression(content, "selector"))
    if "Global" in document.kind:
        homes = calico_selector(_expression(content, "namespaceSelector"), of_namespaces=True)
        targets: tuple[Target, ...] = (PodsAcross(homes, pods),)
    else:
        targets = (PodsMatching(document.home, pods),)
    about = [end for end in ("Ingress", "Egress") if content.get(end.lower())]
    return _by_types(targets, content.get("types"), about or ("Ingress",))


def _expression(content: Content, key: str) -> str:
    expression = content.get(key)
    if not isinstance(expression, str | None):
        raise _Unreadable
    return expression or ""


# Groups that are isolated from the rest


def _by_user_network(document: Document, content: Content) -> UnreadTargets:
    """Read OVN-Kubernetes' networks: a secondary network does not change the default one."""
    network: object = content
    targets: tuple[Target, ...] = (Everything(document.home),)
    if document.kind.startswith("Cluster"):
        if not isinstance(content.get("namespaceSelector"), dict):
            raise _Unreadable
        network, targets = content.get("network"), (PodsAcross(_selector(content, "namespaceSelector"), Selector.of()),)
    if not isinstance(network, dict):
        raise _Unreadable
    settings = [network[topology] for topology in ("layer2", "layer3", "localnet") if topology in network]
    if not settings:
        raise _Unreadable
    if all(isinstance(one, dict) and one.get("role") == "Secondary" for one in settings):
        return UnreadTargets(())
    return UnreadTargets(targets, targets)


def _by_members(document: Document, content: Content) -> UnreadTargets:
    """Read the members of a mesh: its own namespace, and the namespaces that it names or selects."""
    targets: list[Target] = [Everything(document.home)]
    if document.kind == "ServiceMeshMemberRoll":
        members, selectors = content.get("members") or [], content.get("memberSelectors") or []
        if not isinstance(members, list) or not all(isinstance(name, str) for name in members):
            raise _Unreadable
        if not isinstance(selectors, list):
            raise _Unreadable
        if any("*" in name for name in members):
            return UnreadTargets((Everything(None),), (Everything(None),))
        if members:
            named = Selector.of(None, [Requirement(NAME_LABEL, Operator.IN, frozenset(members))])
            targets.append(PodsAcross(named, Selector.of()))
        chosen = (_selector({"namespaces": selector}, "namespaces") for selector in selectors)
        targets += [PodsAcross(namespaces, Selector.of()) for namespaces in chosen]
    return UnreadTargets(tuple(targets), tuple(targets))


# Objects about all of a namespace, or the whole cluster


def _by_namespace(document: Document, _content: Content) -> UnreadTargets:
    targets = (Everything(document.home),)
    return UnreadTargets(targets, targets)


def _by_cluster(_document: Document, _content: Content) -> UnreadTargets:
    targets = (Everything(None),)
    return UnreadTargets(targets, targets)


def _unknown(_document: Document, _content: Content) -> UnreadTargets:
    """Return all targets that an object may affect."""
    return UnreadTargets((Everything(None),), (Everything(None),), located=False)


_LOCATING: Mapping[TargetField, Callable[[Document, Content], UnreadTargets]] = {
    TargetField.POD_SELECTOR: _by_pod_selector,
    TargetField.ENDPOINT_SELECTOR: _by_endpoint_selector,
    TargetField.SUBJECT: _by_subject,
    TargetField.SELECTOR: _by_selector,
    TargetField.WORKLOAD_SELECTOR: _by_workload_selector,
    TargetField.TARGET_REFS: _by_target_refs,
    TargetField.CALICO: _by_calico,
    TargetField.USER_NETWORK: _by_user_network,
    TargetField.MEMBERS: _by_members,
    TargetField.NAMESPACE: _by_namespace,
    TargetField.CLUSTER: _by_cluster,
    TargetField.UNKNOWN: _unknown,
}


def locate_targets(document: Document, *, cluster_scoped: bool) -> tuple[Target, ...]:
    """Return the targets of a policy with errors, if they are readable; else its namespace, or the whole cluster."""
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
