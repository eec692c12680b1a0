"""Targets of policies: workloads, as the world can select them, or one gateway, route or backend by its name.

A named target is looked up for each decision at it: as a tuple, it hashes and compares in C. Its kind is part of it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.ir.labels import Selector


@dataclass(frozen=True, slots=True)
class PodsMatching:
    """The pods of one namespace that a selector selects; the empty selector selects all of them."""

    namespace: str
    selector: Selector

    def __str__(self) -> str:
        return f"pods {self.selector} in {self.namespace}"


@dataclass(frozen=True, slots=True)
class PodsOfService:
    """The pods behind one Service."""

    namespace: str
    service: str

    def __str__(self) -> str:
        return f"pods of Service {self.namespace}/{self.service}"


@dataclass(frozen=True, slots=True)
class PodsAcross:
    """The pods that one selector selects in all namespaces that another selects."""

    namespaces: Selector
    pods: Selector

    def __str__(self) -> str:
        where = "any namespace" if self.namespaces == Selector() else f"namespaces {self.namespaces}"
        return f"pods {self.pods} in {where}"


@dataclass(frozen=True, slots=True)
class PodsOwnedBy:
    """The pods that one controller made, itself or through another, as a Deployment does through its ReplicaSets."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"pods of {self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodsOfAccount:
    """The pods that run as one service account."""

    namespace: str
    account: str

    def __str__(self) -> str:
        return f"pods of ServiceAccount {self.namespace}/{self.account}"


@dataclass(frozen=True, slots=True)
class PodNamed:
    """One declared pod. A derived pod has no name yet, and is not meant."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"Pod {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ExternalsMatching:
    """The ExternalWorkloads of one namespace that a selector selects; no other target means them."""

    namespace: str
    selector: Selector

    def __str__(self) -> str:
        return f"external workloads {self.selector} in {self.namespace}"


@dataclass(frozen=True, slots=True)
class GatewaysMatching:
    """The Gateways whose pods a selector selects, of one namespace or (None) of all. It is no workload.

    The pods of a Gateway have its labels, and a label with its name.
    """

    namespace: str | None
    selector: Selector

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace is not None else ""
        return f"Gateways with pods {self.selector}{where}"


class GatewayNamed(NamedTuple):
    """One Gateway. It is no workload, and selects none."""

    namespace: str
    name: str
    kind: str = "Gateway"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class RouteNamed(NamedTuple):
    """One route. It is no workload, and selects none."""

    namespace: str
    name: str
    kind: str = "HTTPRoute"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class BackendNamed(NamedTuple):
    """One backend behind a gateway. It is no workload, and selects none."""

    namespace: str
    name: str
    kind: str = "Backend"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class HostNamed(NamedTuple):
    """Requests to a host, at an authorizer that finds its policies by host.

    As a target it may begin with a wildcard, and have a port. As a point it is the closest of all such targets to the
    host of a request. So there cannot be more points than targets: see `cluster/hosts.py`.
    """

    host: str

    def __str__(self) -> str:
        return f"host {self.host}"


@dataclass(frozen=True, slots=True)
class RulesOfGateway:
    """The rules of the routes behind a Gateway, for requests by one listener or (None) by any."""

    namespace: str
    name: str
    listener: str | None = None

    @property
    def gateway(self) -> GatewayNamed:
        """Return the Gateway."""
        return GatewayNamed(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.gateway}" if self.listener is None else f"listener {self.listener} of {self.gateway}"


@dataclass(frozen=True, slots=True)
class RulesOfRoute:
    """The rules of a route, or only the rule with this name."""

    namespace: str
    name: str
    kind: str = "HTTPRoute"
    rule: str | None = None

    @property
    def route(self) -> RouteNamed:
        """Return the route."""
        return RouteNamed(self.namespace, self.name, self.kind)

    def __str__(self) -> str:
        return f"{self.route}" if self.rule is None else f"rule {self.rule} of {self.route}"


@dataclass(frozen=True, slots=True)
class Everything:
    """The whole of a namespace, or of the cluster: workloads, gateways, routes and backends."""

    namespace: str | None

    def __str__(self) -> str:
        return f"everything in {self.namespace}" if self.namespace is not None else "everything"


Target: TypeAlias = (
    PodsMatching
    | PodsOfService
    | PodsAcross
    | PodsOwnedBy
    | PodsOfAccount
    | PodNamed
    | ExternalsMatching
    | GatewaysMatching
    | GatewayNamed
    | RouteNamed
    | BackendNamed
    | RulesOfGateway
    | RulesOfRoute
    | HostNamed
    | Everything
)
