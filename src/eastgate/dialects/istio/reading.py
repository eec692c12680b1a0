"""Istio's policies, read: each checked against its shape, and given its meaning."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from eastgate.basics.diagnostics import Reporter
from eastgate.dialects.base import Read, reader
from eastgate.dialects.istio import authentication_meaning, authentication_shapes, meaning, shapes
from eastgate.dialects.istio.model import IstioPolicy
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

_FORMS: dict[str, tuple[Record[Settings], Callable[[Document, Node, Settings], IstioPolicy]]] = {
    "AuthorizationPolicy": (shapes.AUTHORIZATION_POLICY, meaning.authorization_policy),
    "PeerAuthentication": (authentication_shapes.PEER_AUTHENTICATION, authentication_meaning.peer_authentication),
    "RequestAuthentication": (
        authentication_shapes.REQUEST_AUTHENTICATION,
        authentication_meaning.request_authentication,
    ),
}


def read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> IstioPolicy | None:
    """Return the policy that a document describes, where nothing is wrong with it."""
    return _reader(document.kind)(document, root, settings, reporter)


def shape_of(kind: str) -> Record[Settings]:
    """Return the shape of a kind."""
    return _FORMS[kind][0]


@cache
def _reader(kind: str) -> Read[IstioPolicy]:
    return reader(*_FORMS[kind])
