"""Linkerd's inbound policy: Servers, authorizations on them and on their routes, and default policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypedDict, Unpack

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import Everything, PodsMatching, Target
from eastgate.cluster.unread.locating import content_of, selector_in
from eastgate.dialects.base import Dialect, Kind, NameUse, Scene, Surroundings
from eastgate.dialects.linkerd import codes
from eastgate.dialects.linkerd.model import GROUP, LinkerdResource, Server
from eastgate.dialects.linkerd.routes import inspect
from eastgate.dialects.linkerd.settings import LinkerdSettings
from eastgate.dialects.linkerd.stance import POD_ANNOTATIONS, enforce, enforce_stance, stance_of
from eastgate.dialects.linkerd.words import WORDS, conditions, parents
from eastgate.dialects.serving import Status
from eastgate.ir import Attachment, Layer
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["DIALECT", "GROUP", "Policy"]

Policy = LinkerdResource


_ALPHA = ("v1alpha1",)
_ALPHA_TO_BETA_1 = ("v1alpha1", "v1beta1")
_ALPHA_TO_BETA_3 = ("v1alpha1", "v1beta1", "v1beta2", "v1beta3")


class _Traits(TypedDict, total=False):
    """Arguments of `Kind` that only some kinds have."""

    name_use: NameUse
    by_reference: bool
    parent: str
    locate: Callable[[Document], tuple[Target, ...] | None]
    shared_status: Status
    status_lease: str
    selected: bool


def _kinds(kind: str, versions: tuple[str, ...], **more: Unpack[_Traits]) -> Iterator[Kind[LinkerdResource]]:
    """Give a kind in some versions."""
    for version in versions:
        yield Kind(GROUP, version, kind, _read, partial(_shapes, kind, version), **more)


def _read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> LinkerdResource | None:
    from eastgate.dialects.linkerd.meaning import (
        read,  # most folders have no document of this kind
    )

    return read(document, root, settings, reporter)


def _shapes(kind: str, version: str) -> tuple[Record[Settings], ...]:
    from eastgate.dialects.linkerd.meaning import shape_of

    return (shape_of(kind, version),)


def _layers(attached: Sequence[Attachment[LinkerdResource]], scene: Scene) -> list[Layer]:
    from eastgate.dialects.linkerd.assemble import layers  # most folders have no workload with a proxy

    return layers(attached, scene)


def _pods_of_server(document: Document) -> tuple[Target, ...] | None:
    """Return the pods of a Server with errors in other fields; None if it selects no pods."""
    content = content_of(document)
    if "podSelector" not in content:
        return None
    selector = selector_in(content, "podSelector")
    return (PodsMatching(document.home, selector) if selector is not None else Everything(document.home),)


def _lint() -> Linting[LinkerdResource]:
    from eastgate.dialects.linkerd.lint import LINTING

    return LINTING


def _port_names(resource: LinkerdResource) -> Iterable[str]:
    return (resource.port,) if isinstance(resource, Server) and isinstance(resource.port, str) else ()


DIALECT: Dialect[LinkerdResource] = Dialect(
    name="Linkerd",
    model=LinkerdResource,
    kinds=(
        *_kinds("Server", _ALPHA_TO_BETA_3, name_use=NameUse.COMMON, locate=_pods_of_server, selected=True),
        *_kinds("ServerAuthorization", _ALPHA_TO_BETA_1),
        *_kinds("AuthorizationPolicy", _ALPHA, name_use=NameUse.OTHER_GROUPS),
        *_kinds("MeshTLSAuthentication", _ALPHA, by_reference=True),
        *_kinds("NetworkAuthentication", _ALPHA, by_reference=True),
        *_kinds(
            "HTTPRoute",
            _ALPHA_TO_BETA_3,
            name_use=NameUse.COMMON,
            parent="Server",
            shared_status=Status.PARENTS,
            status_lease="policy-controller-write",
        ),
    ),
    layers=_layers,
    words=WORDS,
    settings=LinkerdSettings,
    codes=lambda: (codes,),
    closes=lambda _resource: False,
    lint=_lint,
    stance=stance_of,
    enforce=enforce,
    enforce_stance=enforce_stance,
    status=conditions,
    parents=parents,
    inspect=inspect,
    port_names=_port_names,
    surroundings=Surroundings(pod_annotations=POD_ANNOTATIONS),
    bystanders=frozenset({(GROUP, "EgressNetwork"), (GROUP, "HTTPLocalRateLimitPolicy")}),
)
