"""Policies of the network as descriptions of points see them: objects that they leave out, as they do unread ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eastgate.cluster.points import Direction
from eastgate.cluster.unread.model import EnforcementPlane, TargetField, Unread, UnreadEffect, UnreadKind, UnreadTargets
from eastgate.dialects import Policy
from eastgate.engine.engine import Engine
from eastgate.ir import Layer, Observe, PolicyRef
from eastgate.reading.manifests import Document


def network_objects(
    engine: Engine[Policy],
    document_of: Callable[[PolicyRef], Document | None],
) -> Iterator[Unread]:
    """Yield the policies that the network applies, with the pods at whose ends they decide something."""
    for policy in sorted(engine.network_policies, key=lambda policy: policy.ref):
        document = document_of(policy.ref)
        decides = {direction: any(map(_decides, engine.layers_of(policy, direction))) for direction in Direction}
        if document is not None and any(decides.values()):
            ref = policy.ref
            kind = UnreadKind(
                ref.group, ref.kind, UnreadEffect.DENY, EnforcementPlane.NETWORK, TargetField.POD_SELECTOR
            )
            into = policy.targets if decides[Direction.INGRESS] else ()
            out = policy.targets if decides[Direction.EGRESS] else ()
            yield Unread(kind, UnreadTargets(into, out), document)


def _decides(layer: Layer) -> bool:
    return any(not isinstance(stage, Observe) for chain in layer.chains for stage in chain.stages)
