"""Linkerd's resources, read: each checked against its shape, and given its meaning."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from eastgate.basics.diagnostics import Reporter
from eastgate.dialects.base import Read, reader
from eastgate.dialects.linkerd import meaning, route_meaning, route_shapes, shapes
from eastgate.dialects.linkerd.model import LinkerdResource
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

# Versions of a kind have one shape, or each their own.
_Shape = Record[Settings] | Callable[[str], Record[Settings]]
_FORMS: dict[str, tuple[_Shape, Callable[[Document, Node, Settings], LinkerdResource]]] = {
    "Server": (shapes.server, meaning.server),
    "ServerAuthorization": (shapes.SERVER_AUTHORIZATION, meaning.server_authorization),
    "AuthorizationPolicy": (shapes.AUTHORIZATION_POLICY, meaning.authorization_policy),
    "MeshTLSAuthentication": (shapes.MESH_TLS_AUTHENTICATION, meaning.mesh_tls_authentication),
    "NetworkAuthentication": (shapes.NETWORK_AUTHENTICATION, meaning.network_authentication),
    "HTTPRoute": (route_shapes.HTTP_ROUTE, route_meaning.http_route),
}


def read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> LinkerdResource | None:
    """Return the resource that a document describes, where nothing is wrong with it."""
    return _reader(document.kind, document.version)(document, root, settings, reporter)


@cache
def shape_of(kind: str, version: str) -> Record[Settings]:
    """Return the shape of a kind in a version."""
    shape, _ = _FORMS[kind]
    return shape if isinstance(shape, Record) else shape(version)


@cache
def _reader(kind: str, version: str) -> Read[LinkerdResource]:
    _, mean = _FORMS[kind]
    return reader(shape_of(kind, version), mean)
