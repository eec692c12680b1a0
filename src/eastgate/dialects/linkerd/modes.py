"""The modes of a workload's ports in Linkerd: one for each Server that owns some, and one for the default."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from eastgate.dialects.linkerd.model import LinkerdResource
from eastgate.dialects.linkerd.provenance import InboundScope
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.dialects.linkerd.stance import Stance
from eastgate.dialects.modes import LayerMode, Mode, lets_all_in
from eastgate.ir import Chain, Is, Layer, OneOf, Predicate, conjuncts
from eastgate.ir.attributes import PORT


def modes(layer: Layer, _resources: Sequence[LinkerdResource], stance: Hashable) -> list[LayerMode]:
    """Return one mode for each port that a Server owns, and one for the default."""
    ports: dict[InboundScope, set[int]] = {}
    chains: dict[InboundScope, Chain] = {}
    for case in layer.cases:
        scope = case.chain.scope
        if isinstance(scope, InboundScope) and scope.server is not None:
            ports.setdefault(scope.port, set()).update(_ports(case.when))
            chains.setdefault(scope.port, case.chain)
    owned = []
    for port, numbers in ports.items():
        listed = ", ".join(map(str, sorted(numbers)))
        mode = Mode.OPEN if lets_all_in(chains[port]) else Mode.ALLOW_LIST
        owned.append(LayerMode(layer.at, mode, f"owned by {port}", port.refs, f"port {listed}"))
    if not isinstance(stance, Stance):
        return owned
    default, others = stance.default, "any other port" if owned else "any port"
    open_or_not = Mode.OPEN if lets_all_in(layer.otherwise) else Mode.ALLOW_LIST
    mode = Mode.CLOSED if default.policy is InboundPolicy.DENY else open_or_not
    why = f"default policy {default.policy}, from {default.source}"
    return [*owned, LayerMode(layer.at, mode, why, (), others)]


def _ports(when: Predicate) -> Iterable[int]:
    for part in conjuncts(when):
        if isinstance(part, Is) and part.attribute == PORT and isinstance(part.matcher, OneOf):
            yield from (port for port in part.matcher.values if isinstance(port, int))
