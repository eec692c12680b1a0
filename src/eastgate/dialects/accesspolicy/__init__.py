"""AccessPolicy on Gateway and Backend: which agent may call which MCP tool. In the proposal's form and in today's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from eastgate.cluster import Backend
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.dialects.accesspolicy import codes, meaning, shapes
from eastgate.dialects.accesspolicy.assemble import layers
from eastgate.dialects.accesspolicy.model import Action, Authorizer, Policy
from eastgate.dialects.accesspolicy.settings import AccessSettings
from eastgate.dialects.accesspolicy.status import conditions
from eastgate.dialects.accesspolicy.validation import NETWORKING_GROUP, PROTOTYPE_GROUP, Subject
from eastgate.dialects.accesspolicy.words import WORDS
from eastgate.dialects.base import Dialect, Kind, Scene, reader
from eastgate.dialects.serving import ACTION, AGE, ATTACHED, INHERITED, TARGETS, Column, Resource, Served, Status
from eastgate.ir import Attachment, Layer
from eastgate.manifests import Document
from eastgate.manifests.node import Node
from eastgate.manifests.shapes import Record
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["DIALECT", "Policy"]


def _layers(attached: Sequence[Attachment[Policy]], scene: Scene) -> list[Layer]:
    def granted(authorizer: Authorizer) -> bool:
        return scene.world.granted(*authorizer.referrer, "", "Service", authorizer.namespace, authorizer.service)

    return layers(attached, scene.settings, granted)


def _closes(policy: Policy) -> bool:
    """Return whether it is an ALLOW policy that lists nobody, which turns deny by default on."""
    return not policy.allows and policy.action is Action.ALLOW and not policy.audit


_SHORT = {"XAccessPolicy": "xap", "XBackend": "xbe"}
_FORMS: tuple[tuple[str, str, Record[Subject], Callable[[Document, Node, Settings], Policy]], ...] = (
    (PROTOTYPE_GROUP, "v0alpha0", shapes.V0ALPHA0, meaning.v0alpha0),
    (NETWORKING_GROUP, "v0alpha0", shapes.V0ALPHA0_CEL, meaning.v0alpha0),
    (NETWORKING_GROUP, "v1alpha1", shapes.V1ALPHA1, meaning.v1alpha1),
)
# The prototype's kinds are nobody else's to define.
_SERVED = {
    "XAccessPolicy": Served(Resource("xaccesspolicies", Status.ANCESTORS, INHERITED), (TARGETS, ACTION, *ATTACHED)),
    "XBackend": Served(
        Resource("xbackends", Status.CONDITIONS),
        (
            Column("Service", ".spec.mcp.serviceName"),
            Column("Host", ".spec.mcp.hostname"),
            Column("Port", ".spec.mcp.port", "integer"),
            AGE,
        ),
    ),
}


def _policies(kind: str) -> Iterator[Kind[Policy]]:
    for group, version, shape, mean in _FORMS:
        served = _SERVED.get(kind) if group == PROTOTYPE_GROUP else None
        read = reader(shape, Subject, mean)
        yield Kind(group, version, kind, read, _only(shape), short=_SHORT.get(kind), served=served)


def _backends(kind: str) -> Iterator[Kind[Backend]]:
    for group, version, _, _ in _FORMS:
        served = _SERVED.get(kind) if group == PROTOTYPE_GROUP else None
        read = reader(shapes.BACKEND, Subject, meaning.backend)
        yield Kind(group, version, kind, read, _only(shapes.BACKEND), short=_SHORT.get(kind), served=served)


def _only(shape: Record[Subject]) -> Callable[[], tuple[Record[Subject], ...]]:
    return lambda: (shape,)


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
