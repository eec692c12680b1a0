"""Read a checked HTTPRoute into the model."""

from __future__ import annotations

from eastgate.cluster import RouteMatch, RouteRule
from eastgate.cluster.fields import Data, entries, mapping, texts
from eastgate.cluster.read_filters import read_filters
from eastgate.cluster.read_gateways import read_parent
from eastgate.cluster.read_routes import read_match
from eastgate.dialects.linkerd.meaning import created, everywhere_in, ref_of
from eastgate.dialects.linkerd.model import GROUP, HttpRoute, InboundRoute
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings


def http_route(document: Document, root: Node, _settings: Settings) -> HttpRoute:
    """Read Linkerd's own HTTPRoute; its parts are read as those of Gateway API's."""
    spec, ref = mapping({"spec": root["spec"].plain()}, "spec"), ref_of(document)
    namespace = ref.namespace or ""
    return HttpRoute(
        ref=ref,
        span=document.span,
        targets=everywhere_in(namespace),
        route=InboundRoute(
            group=GROUP,
            kind="HTTPRoute",
            namespace=namespace,
            name=document.name,
            parents=tuple(read_parent(parent, namespace) for parent in entries(spec, "parentRefs")),
            hostnames=texts(spec, "hostnames"),
            rules=tuple(_rule(rule) for rule in entries(spec, "rules")) if "rules" in spec else (RouteRule(),),
            created=created(root),
        ),
    )


def _rule(rule: Data) -> RouteRule:
    """Read a rule. To Linkerd, all headers of one name count."""
    matches = tuple(read_match(match, tuple) for match in entries(rule, "matches"))
    return RouteRule(
        matches=matches or (RouteMatch(),),
        filters=read_filters(rule),
    )
