"""Finds the parts of a route that a gateway does not support, and answers with an error."""

from __future__ import annotations

from eastgate.basics.records import dataclass
from eastgate.cluster import Route, World
from eastgate.cluster.routing.candidates import candidates_of
from eastgate.cluster.targets import GatewayNamed
from eastgate.envoy.plan.gateway import GatewayDestination


@dataclass(frozen=True, slots=True)
class UnsupportedParts:
    """The unsupported parts of a route by rule number. `is_whole`: no part is supported."""

    rules: tuple[tuple[int, tuple[str, ...]], ...] = ()
    is_whole: bool = False

    def __str__(self) -> str:
        return "; ".join(f"{', '.join(names)} (rule {number})" for number, names in self.rules)


def unsupported_parts(route: Route, world: World) -> UnsupportedParts:
    """Return the parts of a route that close its backends at a gateway, from the plan of the gateway."""
    nowhere = GatewayNamed(route.namespace, "")
    rules = {each.routed.rule: each.routed for each in candidates_of(world, nowhere, "", route, None)}
    closed = {
        number: [GatewayDestination("", 1, (), routed, backend).unsupported for backend in routed.backends or (None,)]
        for number, routed in rules.items()
    }
    named = (
        (number, tuple(dict.fromkeys(name for names in of_rule for name in names)))
        for number, of_rule in sorted(closed.items())
    )
    parts = tuple((number, names) for number, names in named if names)
    return UnsupportedParts(parts, bool(parts) and all(names for of_rule in closed.values() for names in of_rule))
