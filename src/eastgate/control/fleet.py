"""The proxies of a control plane: their sites, their own resources, and the state that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from eastgate.authority.authority import Authority, Touched
from eastgate.basics.records import dataclass
from eastgate.cluster import Change, World
from eastgate.cluster.points import Direction, NetworkEnd, Point
from eastgate.control.closures import Closures
from eastgate.control.gateways import GatewaySite
from eastgate.control.planning import Plans
from eastgate.control.sites import ProxySite, WaypointSite, identity_of
from eastgate.envoy.config.gateway_routes import AuthorizerAddress
from eastgate.envoy.config.inbound_port import SVID, InboundPort
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.envoy.server.resources import ResourceKey, XdsResource
from eastgate.settings import OpenRequests


class AuthorizerSockets(NamedTuple):
    """The paths of the sockets at which gateways ask the authorizer: for decisions, and for lists of tools."""

    grpc: str
    http: str


@dataclass(frozen=True, slots=True)
class SiteChange:
    """The sites and gateways that are new or different, and the nodes that are gone."""

    sites: Mapping[str, ProxySite] = field(default_factory=dict)
    gateways: Mapping[str, GatewaySite] = field(default_factory=dict)
    waypoints: Mapping[str, WaypointSite] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.sites or self.gateways or self.waypoints or self.removed)

    @property
    def nodes(self) -> frozenset[str]:
        """Return the proxies that are new or different."""
        return frozenset({*(site.proxy for site in self.sites.values()), *self.gateways, *self.waypoints})


def everything(world: World) -> Touched:
    """Return a world that was not read before, as a change that touches everything."""
    workloads = frozenset(world.workloads)
    change = Change(added=workloads, objects=frozenset(world.objects), services=frozenset(world.services))
    return Touched(workloads, change)


class Fleet:
    """All proxies, of workloads and of gateways. See `Enforcement` for the options."""

    def __init__(
        self,
        authority: Authority,
        *,
        session_key: str,
        authorizer: AuthorizerSockets | AuthorizerAddress | None = None,
        by_address: bool = False,
        tokens: TokenIdentity | None = None,
        sends_logs: bool = False,
    ) -> None:
        self.session_key = session_key
        self.authorizer = authorizer
        self.by_address = by_address
        self.tokens = tokens
        self._sends_logs = sends_logs
        self.sites: dict[str, ProxySite] = {}
        self.gateways: dict[str, GatewaySite] = {}
        self.waypoints: dict[str, WaypointSite] = {}
        self.closures = Closures()
        self.secrets: dict[str, dict[str, XdsResource]] = {}
        self.ended: dict[tuple[str, int], Counter[str]] = {}
        self.decide_by(authority)

    def decide_by(self, authority: Authority) -> None:
        """Plan by this authority from now on. All plans are made again."""
        self.authority = authority
        self.plans = Plans(authority, self.sites, self.gateways)

    def forget(self, node: str) -> None:
        """Forget a proxy that is gone, or a workload whose proxy serves others."""
        site = self.sites.pop(node, None)
        if site is not None:
            self.secrets.get(site.proxy, {}).pop(f"{SVID}/{node}", None)
        self.gateways.pop(node, None)
        self.waypoints.pop(node, None)
        self.secrets.pop(node, None)
        self.closures.forget(node)
        for key in [key for key in self.ended if key[0] == node]:
            del self.ended[key]

    def __contains__(self, node: str) -> bool:
        return node in self.sites or node in self.gateways or node in self.waypoints

    def points_at(self, workload: str) -> list[Point]:
        """Return the points whose policies the proxies of a workload enforce."""
        points: list[Point] = [workload]
        if self.authority.world.is_local:
            points.append(NetworkEnd(workload, Direction.INGRESS))
        return points

    def secrets_of(self, node: str, *keys: ResourceKey) -> list[XdsResource]:
        """Return those of these secrets that a proxy has."""
        return [secret for secret in self.secrets.get(node, {}).values() if secret.key in keys]

    def inbound(self, node: str, site: ProxySite | GatewaySite, port: int, bound: int, **more: Any) -> InboundPort:
        """Return the inbound port of a proxy; `more` are the options of sidecars or of gateways only."""
        settings = self.authority.settings
        return InboundPort(
            node,
            site.address,
            port,
            bound,
            tuple(self._addresses(node)) if self.by_address else (),
            self.tokens,
            settings.open_requests is OpenRequests.END,
            ended=self.ended.get((node, port), Counter()),
            sends_logs=self._sends_logs,
            **more,
        )

    def _addresses(self, node: str) -> Iterator[tuple[str, str]]:
        """Yield the address and identity of every other workload."""
        world = self.authority.world
        for key, site in sorted(self.sites.items()):
            identity = identity_of(world.workloads[key], self.authority.settings) if key != node else None
            if identity is not None:
                yield site.address, identity
