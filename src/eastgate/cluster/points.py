"""Points of enforcement: the places on a request's way where policies apply."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.cluster.targets import BackendNamed, GatewayNamed, HostNamed, RouteNamed, RulesOfGateway, RulesOfRoute
from eastgate.ir import Placement, Site, Unroutable

WorkloadKey: TypeAlias = str
"""A workload by its key in the world, `namespace/name`."""

NamedPoint: TypeAlias = GatewayNamed | RouteNamed | BackendNamed
"""A point that is no workload. A question may name it even if no manifest declares it."""


ANY_LISTENER = "any"
"""The listener of an undeclared Gateway, if the route names none: it means each of its listeners."""


class RuleNamed(NamedTuple):
    """One rule of a route, for the requests that come to it by one listener of a Gateway.

    A route without a Gateway has neither. A rule without a name is called `rule-N`.
    """

    gateway: GatewayNamed | None
    listener: str | None
    route: RouteNamed
    rule: int
    rule_name: str | None

    @property
    def label(self) -> str:
        """Return its name or, without a name, its number, counted from 1."""
        number = str(self.rule + 1)
        return number if self.rule_name in (None, f"rule-{number}") else self.rule_name

    def __str__(self) -> str:
        named = f"rule {self.label} of {self.route}"
        return named if self.gateway is None else f"{named} by listener {self.listener} of {self.gateway}"


_OF_HTTP = frozenset({"HTTPRoute", "GRPCRoute"})


def is_rule_of(rule: RuleNamed, target: RulesOfGateway | RulesOfRoute) -> bool:
    """Return whether a target means a rule. A Gateway means only rules for HTTP: it does not see other traffic."""
    if isinstance(target, RulesOfRoute):
        return rule.route == target.route and target.rule in (None, rule.rule_name)
    is_behind = rule.gateway == target.gateway and target.listener in (None, rule.listener)
    return is_behind and rule.route.kind in _OF_HTTP


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """The end of a way that leads nowhere: every request that arrives here is refused, `at` a gateway or elsewhere."""

    why: Unroutable
    at: Placement = field(default=Placement(Site.GATEWAY, "route"), compare=False)

    def __str__(self) -> str:
        return str(self.why)


class Direction(StrEnum):
    """The direction of a connection, as one of its two ends sees it."""

    EGRESS = "egress"
    INGRESS = "ingress"


@dataclass(frozen=True, slots=True)
class NetworkEnd:
    """The end of a connection at a pod, where the network applies the policies for one direction.

    `labels`: those of a pod that no manifest has, as `labels_text` writes them; the key of such a pod is made up.
    """

    workload: WorkloadKey
    direction: Direction
    labels: str | None = None

    def __str__(self) -> str:
        return f"{self.direction} of {self.workload}"


@dataclass(frozen=True, slots=True)
class UnseenHop:
    """A part of the way between pods that no manifest has: the verdict of the network there is unknown."""

    start: str
    end: str

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"


Point: TypeAlias = WorkloadKey | NamedPoint | RuleNamed | HostNamed | NetworkEnd | UnseenHop | DeadEnd
