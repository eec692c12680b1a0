"""Linkerd's inbound policy: Servers, who is authorized on them and on their routes, and the defaults where none is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from eastgate.dialects.base import Dialect, Kind, reader
from eastgate.dialects.linkerd import meaning, route_meaning, route_shapes, shapes
from eastgate.dialects.linkerd.assemble import layers
from eastgate.dialects.linkerd.gateway_routes import inspect
from eastgate.dialects.linkerd.model import GROUP, Resource
from eastgate.dialects.linkerd.stance import stance_of
from eastgate.dialects.linkerd.status import conditions
from eastgate.schema import Record
from eastgate.settings import Settings
from eastgate.sources import Document
from eastgate.sources.node import Node

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["DIALECT", "GROUP", "Policy"]

Policy = Resource


_ALPHA = ("v1alpha1",)
_ALPHA_TO_BETA_1 = ("v1alpha1", "v1beta1")
_ALPHA_TO_BETA_3 = ("v1alpha1", "v1beta1", "v1beta2", "v1beta3")


def _kinds(
    kind: str,
    versions: tuple[str, ...],
    shape: Record[Settings] | Callable[[str], Record[Settings]],
    mean: Callable[[Document, Node, Settings], Resource],
    *,
    unique: bool = True,
) -> Iterator[Kind[Resource]]:
    """A kind in some versions, which have one shape or each their own."""
    for version in versions:
        of_version = shape if isinstance(shape, Record) else shape(version)
        yield Kind(GROUP, version, kind, reader(of_version, lambda settings: settings, mean), unique)


def _lint() -> Linting[Resource]:
    from eastgate.dialects.linkerd.lint import LINTING

    return LINTING


DIALECT: Dialect[Resource] = Dialect(
    name="Linkerd",
    model=Resource,
    kinds=(
        *_kinds("Server", _ALPHA_TO_BETA_3, shapes.server, meaning.server, unique=False),
        *_kinds("ServerAuthorization", _ALPHA_TO_BETA_1, shapes.SERVER_AUTHORIZATION, meaning.server_authorization),
        *_kinds("AuthorizationPolicy", _ALPHA, shapes.AUTHORIZATION_POLICY, meaning.authorization_policy),
        *_kinds("MeshTLSAuthentication", _ALPHA, shapes.MESH_TLS_AUTHENTICATION, meaning.mesh_tls_authentication),
        *_kinds("NetworkAuthentication", _ALPHA, shapes.NETWORK_AUTHENTICATION, meaning.network_authentication),
        *_kinds("HTTPRoute", _ALPHA_TO_BETA_3, route_shapes.HTTP_ROUTE, route_meaning.http_route, unique=False),
    ),
    layers=layers,
    lint=_lint,
    stance=stance_of,
    status=conditions,
    inspect=inspect,
    bystanders=frozenset({(GROUP, "EgressNetwork"), (GROUP, "HTTPLocalRateLimitPolicy")}),
)
