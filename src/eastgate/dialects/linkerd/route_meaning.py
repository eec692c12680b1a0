"""From a checked HTTPRoute to its meaning."""

from __future__ import annotations

from eastgate.dialects.linkerd.meaning import created, everywhere_in, ref_of
from eastgate.dialects.linkerd.model import GROUP, HttpRoute, InboundRoute
from eastgate.settings import Settings
from eastgate.sources import Document
from eastgate.sources.node import Node
from eastgate.world import GATEWAY_GROUP, ParentRef, PathMatch, PathType, RouteMatch, RouteRule, ValueMatch

__all__ = ["http_route"]


def http_route(document: Document, root: Node, _settings: Settings) -> HttpRoute:
    """Linkerd's own HTTPRoute."""
    spec, ref = root["spec"], ref_of(document)
    namespace = ref.namespace or ""
    rules = spec.get("rules")
    return HttpRoute(
        ref=ref,
        span=document.span,
        targets=everywhere_in(namespace),
        route=InboundRoute(
            group=GROUP,
            kind="HTTPRoute",
            namespace=namespace,
            name=document.name,
            parents=tuple(_parent(parent, namespace) for parent in spec.get("parentRefs") or ()),
            hostnames=tuple(hostname.text for hostname in spec.get("hostnames") or ()),
            rules=tuple(_rule(rule) for rule in rules) if rules is not None else (RouteRule(),),
            created=created(root),
        ),
    )


def _parent(parent: Node, own_namespace: str) -> ParentRef:
    def written(field: str, default: str) -> str:
        node = parent.get(field)
        return node.text if node is not None else default

    port = parent.get("port")
    return ParentRef(
        namespace=written("namespace", own_namespace),
        name=parent["name"].text,
        group=written("group", GATEWAY_GROUP),
        kind=written("kind", "Gateway"),
        section_name=written("sectionName", "") or None,
        port=port.number if port is not None else None,
    )


def _rule(rule: Node) -> RouteRule:
    matches = tuple(_match(match) for match in rule.get("matches") or ())
    return RouteRule(
        matches=matches or (RouteMatch(),), filters=tuple(one["type"].text for one in rule.get("filters") or ())
    )


def _match(match: Node) -> RouteMatch:
    method = match.get("method")
    return RouteMatch(
        path=_path(match.get("path")),
        method=method.text if method is not None else None,
        headers=tuple(_value(one, one["name"].text.lower()) for one in match.get("headers") or ()),
        query=tuple(_value(one, one["name"].text) for one in match.get("queryParams") or ()),
    )


def _path(path: Node | None) -> PathMatch:
    kind, value = (path.get("type"), path.get("value")) if path is not None else (None, None)
    chosen = PathType(kind.text) if kind is not None else PathType.PREFIX
    if value is None:
        return PathMatch(chosen)
    return PathMatch(chosen, value.text)


def _value(one: Node, name: str) -> ValueMatch:
    kind = one.get("type")
    return ValueMatch(name, one["value"].text, regex=kind is not None and kind.text == PathType.REGEX)
