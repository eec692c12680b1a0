"""Destinations: workloads that decide alike, gateways and backends, with the entrances of requests.

Some attributes are known of all requests at an entrance: the port, and the Service that the client addresses. The FIRST
passage whose condition a request meets leads on. A workload has one passage for all requests, a gateway has one for
each match of its routes. ALL points at the end of a passage must allow.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.cluster.points import Point
from eastgate.ir import Between, Layer, Predicate
from eastgate.ir.symbolic.partial import Facts
from eastgate.reach.endings import EnforcementPoint
from eastgate.reach.requests import EVERY_PORT


class DestinationKind(enum.StrEnum):
    """The kinds of destinations, as questions write them."""

    POD = "pod"
    SERVICE = "service"
    GATEWAY = "gateway"
    ROUTE = "route"
    BACKEND = "backend"


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """A path from an entrance, for requests that meet a condition. ALL points must allow.

    `leads_to` is the destination, as questions name it, if it is also a destination itself. `servers` are the servers
    after it. Two passages may lead to one server.
    """

    when: Predicate
    points: tuple[EnforcementPoint, ...]
    leads_to: tuple[str, ...] = ()
    servers: frozenset[tuple[str, ...]] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Entrance:
    """A place where requests arrive: ports that no rule distinguishes, and the Service that requests are addressed to.

    `others`: also every unnamed port of these `ranges`. If `service` is None, requests are addressed to the workload
    itself. The FIRST passage that a request meets leads on, and one always does. `hides_http`: no point sees HTTP.
    """

    ports: tuple[int, ...]
    others: bool
    facts: Facts
    passages: tuple[Passage, ...]
    service: str | None = None
    tls: bool | None = None
    hides_http: bool = False
    ranges: tuple[Between, ...] = (EVERY_PORT,)

    def takes(self, port: int) -> bool:
        """Return whether requests to a port may arrive here, if no other entrance names the port."""
        return port in self.ports or (self.others and any(stretch.contains(port) for stretch in self.ranges))

    @property
    def layers(self) -> Iterator[Layer]:
        """Yield every layer after the entrance, once for each passage that leads to it."""
        return (layer for passage in self.passages for point in passage.points for layer in point.layers)


@dataclass(frozen=True, slots=True, eq=False)
class Destination:
    """Workloads that decide alike, or one gateway, route or backend. `members` are keys, `namespace/name`."""

    kind: DestinationKind
    members: tuple[str, ...]
    entrances: tuple[Entrance, ...]
    layers: tuple[Layer, ...] = ()
    points: tuple[Point, ...] = field(default=())

    @property
    def names(self) -> Iterator[str]:
        """Yield the members as questions name them."""
        return (f"{self.kind}:{member}" for member in self.members)
