"""Who enforces a layer at a gateway: the Envoy itself, or the authorizer that it asks."""

from __future__ import annotations

import enum

from eastgate.basics.records import dataclass
from eastgate.envoy.plan.combining import obstacle
from eastgate.envoy.plan.vantage import AT_GATEWAY
from eastgate.ir import Layer, at_port
from eastgate.ir.attributes import BACKEND


class Enforcer(enum.StrEnum):
    """Who decides at a gateway."""

    ENVOY = "envoy"
    AUTHORIZER = "authorizer"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class LayerEnforcement:
    """Who decides by a layer, and why it is not the Envoy alone. `asked` are the authorizers that rules name."""

    enforcer: Enforcer
    reason: str | None = None
    asked: tuple[str, ...] = ()


def enforcement_at_gateway(layer: Layer, port: int, backend: str | None) -> LayerEnforcement:
    """Return who decides by a layer at a port, on the way to a backend.

    Where all layers of a way together have too many ends for an Envoy, the authorizer decides in spite of this.
    """
    at = at_port(layer, port)
    vantage = AT_GATEWAY.knowing({BACKEND: backend})
    asked = tuple(sorted({ask.authorizer for ask in at.asks}))
    problem = next(filter(None, (obstacle(atom, vantage) for atom in at.atoms(observed=False))), None)
    if problem is not None:
        return LayerEnforcement(Enforcer.AUTHORIZER, problem[1], asked)
    return LayerEnforcement(Enforcer.BOTH if asked else Enforcer.ENVOY, None, asked)
