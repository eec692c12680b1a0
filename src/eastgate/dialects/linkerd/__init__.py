"""Linkerd's inbound policy: Servers, who is authorized on them and on their routes, and the defaults where none is."""

from __future__ import annotations

from collections.abc import Callable

from eastgate.dialects.base import Dialect, Kind, Read, reader
from eastgate.dialects.linkerd import meaning, route_meaning, route_shapes, shapes
from eastgate.dialects.linkerd.assemble import layers
from eastgate.dialects.linkerd.model import GROUP, Resource
from eastgate.dialects.linkerd.stance import stance_of
from eastgate.schema import Record
from eastgate.settings import Settings
from eastgate.sources import Document
from eastgate.sources.node import Node

__all__ = ["DIALECT", "GROUP", "Policy"]

Policy = Resource


def _read(shape: Record[Settings], mean: Callable[[Document, Node, Settings], Resource]) -> Read[Resource]:
    return reader(shape, lambda settings: settings, mean)


_old_server = _read(shapes.server(access_policy=False, external_workloads=False), meaning.server)
_route = _read(route_shapes.HTTP_ROUTE, route_meaning.http_route)
_server_authorization = _read(shapes.SERVER_AUTHORIZATION, meaning.server_authorization)

DIALECT: Dialect[Resource] = Dialect(
    name="Linkerd",
    model=Resource,
    kinds=(
        Kind(GROUP, "v1alpha1", "Server", _old_server, unique=False),
        Kind(GROUP, "v1beta1", "Server", _old_server, unique=False),
        Kind(
            GROUP,
            "v1beta2",
            "Server",
            _read(shapes.server(access_policy=False, external_workloads=True), meaning.server),
            unique=False,
        ),
        Kind(
            GROUP,
            "v1beta3",
            "Server",
            _read(shapes.server(access_policy=True, external_workloads=True), meaning.server),
            unique=False,
        ),
        Kind(GROUP, "v1alpha1", "ServerAuthorization", _server_authorization),
        Kind(GROUP, "v1beta1", "ServerAuthorization", _server_authorization),
        Kind(
            GROUP, "v1alpha1", "AuthorizationPolicy", _read(shapes.AUTHORIZATION_POLICY, meaning.authorization_policy)
        ),
        Kind(
            GROUP,
            "v1alpha1",
            "MeshTLSAuthentication",
            _read(shapes.MESH_TLS_AUTHENTICATION, meaning.mesh_tls_authentication),
        ),
        Kind(
            GROUP,
            "v1alpha1",
            "NetworkAuthentication",
            _read(shapes.NETWORK_AUTHENTICATION, meaning.network_authentication),
        ),
        *(
            Kind(GROUP, version, "HTTPRoute", _route, unique=False)
            for version in ("v1alpha1", "v1beta1", "v1beta2", "v1beta3")
        ),
    ),
    layers=layers,
    stance=stance_of,
    bystanders=frozenset({(GROUP, "EgressNetwork"), (GROUP, "HTTPLocalRateLimitPolicy")}),
)
