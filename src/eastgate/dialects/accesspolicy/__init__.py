"""AccessPolicy on Gateway and Backend: which agent may call which MCP tool. In the proposal's form and in today's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eastgate.dialects.accesspolicy import meaning, shapes
from eastgate.dialects.accesspolicy.assemble import layers
from eastgate.dialects.accesspolicy.model import Authorizer, Policy
from eastgate.dialects.accesspolicy.status import conditions
from eastgate.dialects.accesspolicy.validation import NETWORKING_GROUP, PROTOTYPE_GROUP, Subject
from eastgate.dialects.base import Dialect, Kind, Scene, reader
from eastgate.policy import Attachment, Layer
from eastgate.world import Backend

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["BACKENDS", "DIALECT", "Policy"]


def _layers(attached: Sequence[Attachment[Policy]], scene: Scene) -> list[Layer]:
    def granted(authorizer: Authorizer) -> bool:
        return scene.world.granted(*authorizer.referrer, "", "Service", authorizer.namespace, authorizer.service)

    return layers(attached, scene.settings, granted)


_v0alpha0 = reader(shapes.V0ALPHA0, Subject, meaning.v0alpha0)
_v0alpha0_cel = reader(shapes.V0ALPHA0_CEL, Subject, meaning.v0alpha0)
_v1alpha1 = reader(shapes.V1ALPHA1, Subject, meaning.v1alpha1)
_backend = reader(shapes.BACKEND, Subject, meaning.backend)


def _lint() -> Linting[Policy]:
    from eastgate.dialects.accesspolicy.lint import LINTING

    return LINTING


DIALECT: Dialect[Policy] = Dialect(
    name="AccessPolicy",
    model=Policy,
    kinds=tuple(
        kind
        for name in ("XAccessPolicy", "AccessPolicy")
        for kind in (
            Kind(PROTOTYPE_GROUP, "v0alpha0", name, _v0alpha0),
            Kind(NETWORKING_GROUP, "v0alpha0", name, _v0alpha0_cel),
            Kind(NETWORKING_GROUP, "v1alpha1", name, _v1alpha1),
        )
    ),
    layers=_layers,
    lint=_lint,
    status=conditions,
    bystanders=frozenset((group, "KANConfig") for group in (PROTOTYPE_GROUP, NETWORKING_GROUP)),
)

# Backends are no policies: they are read by this dialect, because it defines them, and belong to the world.
BACKENDS: tuple[Kind[Backend], ...] = tuple(
    Kind(group, version, name, _backend)
    for name in ("XBackend", "Backend")
    for group, version in (
        (PROTOTYPE_GROUP, "v0alpha0"),
        (NETWORKING_GROUP, "v0alpha0"),
        (NETWORKING_GROUP, "v1alpha1"),
    )
)
