"""Linkerd's inbound policy: Servers, who is authorized on them and on their routes, and the defaults where none is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypedDict, Unpack

from eastgate.cluster import Everything, PodsMatching, Target
from eastgate.dialects.base import Dialect, Kind, NameUse, reader
from eastgate.dialects.linkerd import codes, meaning, route_meaning, route_shapes, shapes
from eastgate.dialects.linkerd.assemble import layers
from eastgate.dialects.linkerd.gateway_routes import inspect
from eastgate.dialects.linkerd.model import GROUP, Resource
from eastgate.dialects.linkerd.settings import LinkerdSettings
from eastgate.dialects.linkerd.stance import stance_of
from eastgate.dialects.linkerd.status import conditions
from eastgate.dialects.linkerd.words import WORDS
from eastgate.manifests import Document
from eastgate.manifests.node import Node
from eastgate.manifests.shapes import Record
from eastgate.settings import Settings
from eastgate.unread.locating import content_of, selector_in

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["DIALECT", "GROUP", "Policy"]

Policy = Resource


_ALPHA = ("v1alpha1",)
_ALPHA_TO_BETA_1 = ("v1alpha1", "v1beta1")
_ALPHA_TO_BETA_3 = ("v1alpha1", "v1beta1", "v1beta2", "v1beta3")


class _Traits(TypedDict, total=False):
    """Arguments of `Kind` that only some kinds have."""

    name_use: NameUse
    by_reference: bool
    parent: str
    locate: Callable[[Document], tuple[Target, ...] | None]


def _kinds(
    kind: str,
    versions: tuple[str, ...],
    shape: Record[Settings] | Callable[[str], Record[Settings]],
    mean: Callable[[Document, Node, Settings], Resource],
    **more: Unpack[_Traits],
) -> Iterator[Kind[Resource]]:
    """Give a kind in some versions, which have one shape or each their own."""
    for version in versions:
        of_version = shape if isinstance(shape, Record) else shape(version)
        yield Kind(GROUP, version, kind, reader(of_version, lambda settings: settings, mean), _only(of_version), **more)


def _only(shape: Record[Settings]) -> Callable[[], tuple[Record[Settings], ...]]:
    return lambda: (shape,)


def _pods_of_server(document: Document) -> tuple[Target, ...] | None:
    """Return the pods of a Server that has errors elsewhere; None where it selects none."""
    content = content_of(document)
    if "podSelector" not in content:
        return None
    selector = selector_in(content, "podSelector")
    return (PodsMatching(document.home, selector) if selector is not None else Everything(document.home),)


def _lint() -> Linting[Resource]:
    from eastgate.dialects.linkerd.lint import LINTING

    return LINTING


DIALECT: Dialect[Resource] = Dialect(
    name="Linkerd",
    model=Resource,
    kinds=(
        *_kinds(
            "Server",
            _ALPHA_TO_BETA_3,
            shapes.server,
            meaning.server,
            name_use=NameUse.COMMON,
            locate=_pods_of_server,
        ),
        *_kinds("ServerAuthorization", _ALPHA_TO_BETA_1, shapes.SERVER_AUTHORIZATION, meaning.server_authorization),
        *_kinds(
            "AuthorizationPolicy",
            _ALPHA,
            shapes.AUTHORIZATION_POLICY,
            meaning.authorization_policy,
            name_use=NameUse.OTHER_GROUPS,
        ),
        *_kinds(
            "MeshTLSAuthentication",
            _ALPHA,
            shapes.MESH_TLS_AUTHENTICATION,
            meaning.mesh_tls_authentication,
            by_reference=True,
        ),
        *_kinds(
            "NetworkAuthentication",
            _ALPHA,
            shapes.NETWORK_AUTHENTICATION,
            meaning.network_authentication,
            by_reference=True,
        ),
        *_kinds(
            "HTTPRoute",
            _ALPHA_TO_BETA_3,
            route_shapes.HTTP_ROUTE,
            route_meaning.http_route,
            name_use=NameUse.COMMON,
            parent="Server",
        ),
    ),
    layers=layers,
    words=WORDS,
    settings=LinkerdSettings,
    codes=lambda: (codes,),
    closes=lambda _resource: False,
    lint=_lint,
    stance=stance_of,
    status=conditions,
    inspect=inspect,
    bystanders=frozenset({(GROUP, "EgressNetwork"), (GROUP, "HTTPLocalRateLimitPolicy")}),
)
