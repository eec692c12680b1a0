"""Read a checked HTTPRoute into the model."""

from __future__ import annotations

from typing import Any

from eastgate.cluster import RouteMatch, RouteRule
from eastgate.cluster.read_filters import FILTERS
from eastgate.cluster.read_gateways import PARENTS
from eastgate.cluster.read_routes import matches
from eastgate.cluster.shapes import TEXTS, each, record
from eastgate.dialects.linkerd.meaning import created, everywhere_in, ref_of
from eastgate.dialects.linkerd.model import GROUP, HttpRoute, InboundRoute
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Field
from eastgate.reading.manifests.shapes.reading import reader
from eastgate.settings import Settings

_MATCHES = each(matches(), make=RouteMatch, together=lambda some: some or (RouteMatch(),))
_RULES = each({"matches": _MATCHES, "filters": FILTERS}, make=RouteRule)
_SPEC = record({"parentRefs": Field(PARENTS, into="parents"), "hostnames": TEXTS, "rules": _RULES})
_read_spec = reader(_SPEC, checked=False)


def http_route(document: Document, root: Node, _settings: Settings) -> HttpRoute:
    """Read Linkerd's own HTTPRoute; its parts are read as those of Gateway API's, but all headers of one name count."""
    ref = ref_of(document)
    namespace = ref.namespace or ""
    spec: dict[str, Any] = {"parents": (), "rules": (RouteRule(),), **_read_spec(root["spec"].plain(), namespace)}
    return HttpRoute(
        ref=ref,
        span=document.span,
        targets=everywhere_in(namespace),
        route=InboundRoute(
            group=GROUP,
            kind="HTTPRoute",
            namespace=namespace,
            name=document.name,
            created=created(root),
            **spec,
        ),
    )
