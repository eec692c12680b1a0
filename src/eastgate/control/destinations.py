"""Finds the destination of a gateway's request by the name in the log."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from eastgate.authority.authority import Authority, programs_of
from eastgate.basics.records import dataclass
from eastgate.cluster.points import DeadEnd, Point
from eastgate.cluster.targets import GatewayNamed
from eastgate.control.access_log import Observation
from eastgate.control.gateway_nodes import gateway_of, ports_of_gateway
from eastgate.dialects import Policy
from eastgate.engine.programs import Programs
from eastgate.envoy.plan.gateway import GatewayDestination
from eastgate.envoy.plan.gateway_planner import plan_destinations


@dataclass(slots=True)
class _Known:
    """The destinations of each port of a gateway, for one version of an engine."""

    version: int
    ports: dict[tuple[str, int], Mapping[str, GatewayDestination]]


class Destinations:
    """Finds destinations, and caches those of an authority until it changes."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Programs[Policy], _Known] = WeakKeyDictionary()

    def find(self, observation: Observation, authority: Authority) -> GatewayDestination | None:
        """Return the destination of a request, or None if no destination has that name now."""
        if observation.destination is None:
            return None
        return self._at(observation.workload, observation.port, authority).get(observation.destination)

    def points(self, observation: Observation, authority: Authority) -> tuple[Point, ...]:
        """Return the known points of enforcement on the path of a request."""
        gateway = gateway_of(observation.workload, authority.world)
        if gateway is None:
            return (observation.workload,) if observation.workload in authority.world.workloads else ()
        destination = self.find(observation, authority)
        return destination.points if destination is not None else (GatewayNamed(gateway.namespace, gateway.name),)

    def _at(self, node: str, port: int, authority: Authority) -> Mapping[str, GatewayDestination]:
        engine = programs_of(authority)
        known = self._known.get(engine)
        if known is None or known.version != engine.version:
            known = self._known[engine] = _Known(engine.version, {})
        if (node, port) not in known.ports:
            known.ports[node, port] = _destinations_at(node, port, authority)
        return known.ports[node, port]


def _destinations_at(node: str, port: int, authority: Authority) -> Mapping[str, GatewayDestination]:
    world = authority.world
    gateway = gateway_of(node, world)
    group = ports_of_gateway(world, gateway).get(port) if gateway is not None else None
    if gateway is None or group is None:
        return {}
    named = GatewayNamed(gateway.namespace, gateway.name)
    return plan_destinations(
        named, group, lambda point: programs_of(authority).program(point).layers, world, authority.settings
    )


def dead_end_of(destination: GatewayDestination | None) -> DeadEnd | None:
    """Return the dead end of a destination, or None if it leads to a server or is unknown."""
    end = destination.points[-1] if destination is not None else None
    return end if isinstance(end, DeadEnd) else None
