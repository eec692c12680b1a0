"""AccessPolicy on Gateway and Backend, in the proposal's form and in today's: which MCP tools an agent may call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import Backend
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.dialects.accesspolicy import codes
from eastgate.dialects.accesspolicy.model import NETWORKING_GROUP, PROTOTYPE_GROUP, Action, AuthorizerReference, Policy
from eastgate.dialects.accesspolicy.settings import AccessSettings
from eastgate.dialects.accesspolicy.words import WORDS, conditions
from eastgate.dialects.base import Dialect, Kind, Scene
from eastgate.dialects.serving import ACTION, AGE, ATTACHED, INHERITED, TARGETS, Column, Served, ServedResource, Status
from eastgate.ir import Attachment, Layer
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["DIALECT", "Policy"]


def _layers(attached: Sequence[Attachment[Policy]], scene: Scene) -> list[Layer]:
    from eastgate.dialects.accesspolicy.assemble import layers  # most folders have no policy of this kind

    def granted(authorizer: AuthorizerReference) -> bool:
        return scene.world.granted(*authorizer.reference)

    return layers(attached, scene.settings, granted)


def _closes(policy: Policy) -> bool:
    """Return whether the policy is an ALLOW without callers, which turns deny by default on."""
    return not policy.allows and policy.action is Action.ALLOW and not policy.audit


_SHORT = {"XAccessPolicy": "xap", "XBackend": "xbe"}
_VERSIONS = ((PROTOTYPE_GROUP, "v0alpha0"), (NETWORKING_GROUP, "v0alpha0"), (NETWORKING_GROUP, "v1alpha1"))
# Only this dialect defines the prototype's kinds.
_SERVED = {
    "XAccessPolicy": Served(
        ServedResource("xaccesspolicies", Status.ANCESTORS, INHERITED), (TARGETS, ACTION, *ATTACHED)
    ),
    "XBackend": Served(
        ServedResource("xbackends", Status.CONDITIONS),
        (
            Column("Service", ".spec.mcp.serviceName"),
            Column("Host", ".spec.mcp.hostname"),
            Column("Port", ".spec.mcp.port", "integer"),
            AGE,
        ),
    ),
}


def _policies(kind: str) -> Iterator[Kind[Policy]]:
    for group, version in _VERSIONS:
        served = _SERVED.get(kind) if group == PROTOTYPE_GROUP else None
        shapes = partial(_policy_shapes, group, version)
        yield Kind(
            group,
            version,
            kind,
            _read_policy,
            shapes,
            short=_SHORT.get(kind),
            served=served,
            shared_status=Status.ANCESTORS,
        )


def _backends(kind: str) -> Iterator[Kind[Backend]]:
    for group, version in _VERSIONS:
        served = _SERVED.get(kind) if group == PROTOTYPE_GROUP else None
        yield Kind(group, version, kind, _read_backend, _backend_shapes, short=_SHORT.get(kind), served=served)


def _read_policy(document: Document, root: Node, settings: Settings, reporter: Reporter) -> Policy | None:
    from eastgate.dialects.accesspolicy.meaning import (
        read_policy,  # most folders have no document of this kind
    )

    return read_policy(document, root, settings, reporter)


def _read_backend(document: Document, root: Node, settings: Settings, reporter: Reporter) -> Backend | None:
    from eastgate.dialects.accesspolicy.meaning import read_backend

    return read_backend(document, root, settings, reporter)


def _policy_shapes(group: str, version: str) -> tuple[Record[Any], ...]:
    from eastgate.dialects.accesspolicy.meaning import POLICY_SHAPES

    return (POLICY_SHAPES[group, version],)


def _backend_shapes() -> tuple[Record[Any], ...]:
    from eastgate.dialects.accesspolicy.meaning import BACKEND_SHAPE

    return (BACKEND_SHAPE,)


def _lint() -> Linting[Policy]:
    from eastgate.dialects.accesspolicy.lint import LINTING

    return LINTING


DIALECT: Dialect[Policy] = Dialect(
    name="AccessPolicy",
    model=Policy,
    kinds=(*_policies("XAccessPolicy"), *_policies("AccessPolicy")),
    objects=tuple(kind for name in BACKEND_KINDS for kind in _backends(name)),
    layers=_layers,
    words=WORDS,
    settings=AccessSettings,
    codes=lambda: (codes,),
    closes=_closes,
    lint=_lint,
    status=conditions,
    bystanders=frozenset((group, "KANConfig") for group in (PROTOTYPE_GROUP, NETWORKING_GROUP)),
)
