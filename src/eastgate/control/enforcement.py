"""Turns policies into Envoy resources: takes an authority and the sites of proxies, makes the resources of each proxy.

It starts no process and opens no socket: it writes into the store, which the xDS server serves. After a change of a
policy, only the affected workloads are compiled again. The store gets only resources that differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from secrets import token_hex
from types import MappingProxyType
from typing import Final, TypeAlias

from eastgate.authority.authority import Authority, Touched, programs_of
from eastgate.basics.collection import no_collection
from eastgate.control.ambient import AmbientResources, unit_at, units_of
from eastgate.control.closures import Closure
from eastgate.control.fleet import AuthorizerSockets, Fleet, SiteChange
from eastgate.control.gateway_proxies import resources_of_gateway
from eastgate.control.gateways import GatewaySite, gateway_identity
from eastgate.control.identity import Svid, TrustBundles
from eastgate.control.outbound import OutboundResources
from eastgate.control.planning import Plans, is_routing
from eastgate.control.sidecars import SidecarResources
from eastgate.control.sites import ProxySite, WaypointSite, identity_of
from eastgate.envoy.config.client_certificates import certificate_secret, optional_trust_secret, trust_secret
from eastgate.envoy.config.gateway_routes import AuthorizerAddress
from eastgate.envoy.config.inbound_port import SVID
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.envoy.server.resources import EXTENSION, ResourceKey, XdsResource
from eastgate.envoy.server.status import ProxyStatus, ResourceRejection
from eastgate.envoy.server.store import Store
from eastgate.ir.symbolic.callers import CallerCell

_NO_WAYPOINTS: Final[Mapping[str, WaypointSite]] = MappingProxyType({})

OnClosure: TypeAlias = Callable[[Closure, bool], None]
"""A function that gets a closure, and whether the port is now closed (or open again)."""


class Enforcement:
    """The enforcement of policies at sites.

    `by_address`: callers without a certificate are identified by their address. `tokens`: they are identified by a
    token. `session_key` is the secret by which gateways bind sessions to callers. Control planes of the same gateways
    share it. `on_demand`: a sidecar gets resources only after the first request for them (`serve`), since in a large
    cluster other replicas serve most proxies. `on_closure` is called when a port is closed or opened again, but not
    when the port or its proxy is removed.
    """

    def __init__(
        self,
        authority: Authority,
        store: Store,
        *,
        by_address: bool = False,
        tokens: TokenIdentity | None = None,
        authorizer: AuthorizerSockets | AuthorizerAddress | None = None,
        session_key: str | None = None,
        on_demand: bool = False,
        sends_logs: bool = False,
        on_closure: OnClosure | None = None,
    ) -> None:
        self.store = store
        self.fleet = Fleet(
            authority,
            session_key=session_key or token_hex(32),
            authorizer=authorizer,
            by_address=by_address,
            tokens=tokens,
            sends_logs=sends_logs,
        )
        self.sites: Mapping[str, ProxySite] = self.fleet.sites
        self.gateways: Mapping[str, GatewaySite] = self.fleet.gateways
        self._sidecars = SidecarResources(self.fleet)
        self._outbound = OutboundResources(self.fleet)
        self._ambient = AmbientResources(self.fleet)
        self.waypoints: Mapping[str, WaypointSite] = self.fleet.waypoints
        self._on_closure = on_closure
        self._served: set[str] | None = set() if on_demand else None  # the sidecars that are served; None: all
        self._stale: dict[str, None] = {}  # proxies with outdated known identities, in order
        self.changes: Counter[str] = Counter()  # by proxy: changes, also possible ones, of what it enforces
        self.rule_changes: Counter[str] = Counter()  # by proxy: changes of the rules that it evaluates itself
        self._had_network_policies = False  # at the last update
        self._is_current = False  # whether the last change was published; False before the first

    @property
    def authority(self) -> Authority:
        """Return the authority that is enforced."""
        return self.fleet.authority

    @property
    def plans(self) -> Plans:
        """Return the plans of all ports."""
        return self.fleet.plans

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of all proxies: those of workloads or nodes, gateways, and waypoints."""
        return (*dict.fromkeys(site.proxy for site in self.sites.values()), *self.gateways, *self.waypoints)

    def _proxies_of(self, workload: str) -> Iterator[str]:
        """Yield the proxies that enforce something for a workload; of another name, that itself."""
        site = self.sites.get(workload)
        if site is None:
            yield workload
            return
        yield site.proxy
        if site.waypoint is not None:
            yield site.waypoint.name

    @property
    def closed(self) -> Mapping[tuple[str, int], Closure]:
        """Return the closed ports, by workload and port number."""
        return self.fleet.closures.closed

    def closure_of(self, node: str, port: int) -> Closure | None:
        """Return the closure of a port, at the proxy of a workload or at its waypoint; None if it is open."""
        site = self.sites.get(node)
        at_waypoint = unit_at(site.waypoint.name, node) if site is not None and site.waypoint is not None else node
        return self.closed.get((node, port)) or self.closed.get((at_waypoint, port))

    def units_of(self, proxy: str) -> Iterable[str]:
        """Return the names by which the ports are closed that a proxy guards."""
        return units_of(proxy, self.fleet)

    def guarded_by(self, proxy: str) -> list[str]:
        """Return the workloads that a proxy guards, or the gateway that it is."""
        if proxy in self.waypoints:
            return list(self.waypoints[proxy].workloads)
        return [key for key, site in self.sites.items() if site.node == proxy] or [proxy]

    def changes_of(self, node: str) -> tuple[int, int]:
        """Count the changes of what the proxies of a workload or gateway enforce: of all, and of rules for requests."""
        proxies = list(self._proxies_of(node))
        return sum(self.changes[proxy] for proxy in proxies), sum(self.rule_changes[proxy] for proxy in proxies)

    # What changes

    def decide_by(self, authority: Authority) -> None:
        """Enforce this authority from the next `follow`, which computes all resources again."""
        self.fleet.decide_by(authority)
        self._outbound.clear()
        self._is_current = False

    @no_collection()
    def follow(self, sites: SiteChange, touched: Touched) -> frozenset[str]:
        """Enforce the changed authority and sites; return the proxies whose resources were computed again.

        At first, and after a change that failed midway, everything counts as touched. If the known identities changed,
        call `renew` afterwards.
        """
        fleet, world, change = self.fleet, self.authority.world, touched.change
        emptied = {site.proxy for key in sites.removed if (site := self.sites.get(key)) is not None}
        self._forget_unserved(sites)
        for node in sites.removed & {*self.sites, *self.nodes}:
            fleet.forget(node)
            self._sidecars.forget(node)
            self.store.forget(node)
        if not self._is_current:
            self.decide_by(self.authority)
            sites = SiteChange(
                {**self.sites, **sites.sites},
                {**self.gateways, **sites.gateways},
                {**self.waypoints, **sites.waypoints},
                sites.removed,
            )
        self._is_current = False
        fleet.sites |= sites.sites
        fleet.gateways |= sites.gateways
        fleet.waypoints |= sites.waypoints
        services = change.services | {
            service for key in {*sites.sites, *sites.removed, *change.workloads} for service in world.services_of(key)
        }
        if any(changed.kind == "EndpointSlice" for changed in change.objects):
            services |= world.services.keys()
        if self.plans.follow(change, {*sites.gateways, *sites.removed}):
            proxies = (site.proxy for site in self._served_sites().values())
            self._stale = dict.fromkeys((*proxies, *self.gateways, *self.waypoints))
        captured = bool(sites) or bool(services) or (bool(self.gateways) and is_routing(change))
        outbound = self._outbound.follow(services, self._served_sites(), captured=captured)
        stale = (*self._sidecars.stale(touched.points), *self.plans.stale_gateways(services))
        nodes = frozenset((*sites.nodes, *(proxy for each in stale for proxy in self._proxies_of(each))))
        nodes |= emptied & {*self.nodes}
        if (fleet.by_address and sites) or self._is_between_pods():
            nodes = frozenset(self.nodes)
        nodes = frozenset(filter(self.serves, nodes))
        self.publish(nodes)
        for node in filter(self.serves, outbound.keys() - nodes):
            self.store.update(node, put=outbound[node].put, remove=outbound[node].removed)
        self._is_current = True
        return nodes | outbound.keys()

    def _forget_unserved(self, sites: SiteChange) -> None:
        """Forget the closed ports of workloads at waypoints that no longer serve them."""
        for name, served in self.waypoints.items():
            kept = sites.waypoints.get(name, served).workloads if name not in sites.removed else ()
            for workload in {*served.workloads}.difference(kept):
                self.fleet.closures.forget(unit_at(name, workload))

    def _is_between_pods(self) -> bool:
        """Return whether sidecars enforce network policies, or did before this change: a caller's egress policies apply
        at its destinations.
        """
        had, self._had_network_policies = self._had_network_policies, programs_of(self.authority).has_network_policies
        return self.authority.world.is_local and (had or self._had_network_policies)

    def serve(self, node: str) -> None:
        """Publish the resources of a sidecar, now and after each change. Without `on_demand`, all are published."""
        if self._served is not None and node not in self._served:
            self._served.add(node)
            self.publish([node])

    def release(self, nodes: Iterable[str]) -> None:
        """Forget sidecars that are gone. Another sidecar of the same name must be requested again."""
        gone = self._served.intersection(nodes) if self._served is not None else frozenset[str]()
        for node in sorted(gone):
            self._sidecars.forget(node)
            self.fleet.closures.forget(node)
            self.store.forget(node)
        if self._served is not None:
            self._served -= gone

    def serves(self, node: str) -> bool:
        """Return whether the resources of a proxy are published."""
        return self._served is None or node in self._served or node in self.gateways

    def _served_sites(self) -> Mapping[str, ProxySite]:
        if self._served is None:
            return self.sites
        return {node: self.sites[node] for node in sorted(self._served) if node in self.sites}

    def renew(self, most: int | None = None) -> bool:
        """Compute the resources of at most `most` proxies with outdated identities again; return whether more remain.

        Until then such a proxy decides about a new identity as about any caller without a name, which is correct. But
        it cannot close the connections of that identity alone.
        """
        self.publish(list(self._stale)[:most])
        self._stale = dict.fromkeys(list(self._stale)[most:] if most is not None else ())
        return bool(self._stale)

    def changes_to(
        self,
        sites: Mapping[str, ProxySite],
        gateways: Mapping[str, GatewaySite],
        waypoints: Mapping[str, WaypointSite] = _NO_WAYPOINTS,
    ) -> SiteChange:
        """Return the changes after which these are all sites, gateways and waypoints."""
        return SiteChange(
            {node: site for node, site in sites.items() if self.sites.get(node) != site},
            {node: site for node, site in gateways.items() if self.gateways.get(node) != site},
            {node: site for node, site in waypoints.items() if self.waypoints.get(node) != site},
            frozenset({*self.sites, *self.gateways, *self.waypoints} - {*sites, *gateways, *waypoints}),
        )

    # Rejections and acknowledgements

    def reject(self, node: str, key: ResourceKey, rejection: ResourceRejection) -> None:
        """Close the ports of a resource that a proxy has rejected."""
        if node in self.nodes:
            for unit in self.units_of(node):
                self.fleet.closures.reject(unit, key, rejection)
            self.publish([node])

    def has_closed(self, node: str) -> bool:
        """Return whether a proxy has ports that are closed until it has everything."""
        return any(self.fleet.closures.has_closed_ports(unit) for unit in self.units_of(node))

    def accept(self, node: str, status: ProxyStatus | None) -> bool:
        """Open the closed ports whose resources the proxy has all accepted; return whether this changed anything.

        After a change, call it again with the new status.
        """
        closures, resources = self.fleet.closures, status.resources if status is not None else ()
        states = {(resource.type_url, resource.name): resource.state for resource in resources}
        changed = False
        for unit in self.units_of(node):
            changed |= closures.forget_accepted(unit, resources) or closures.open(unit, states)
        if changed:
            self.publish([node])
        return changed

    # Certificates

    def identity_of(self, node: str) -> str | None:
        """Return the identity of a proxy, or None if it has none or is gone."""
        settings = self.authority.settings
        if node in self.gateways:
            return gateway_identity(self.gateways[node].gateway, settings)
        if node in self.waypoints:
            return self.waypoints[node].waypoint.identity
        workload = self.authority.world.workloads.get(node)
        return identity_of(workload, settings) if workload is not None else None

    def put_svid(self, node: str, svid: Svid) -> None:
        """Publish the SVID of a workload."""
        site = self.sites.get(node)
        is_shared = node in self.waypoints or (site is not None and site.proxy != node)
        name = f"{SVID}/{node}" if is_shared else SVID
        self._put_secret(self._proxy_of(node), certificate_secret(name, svid.chain.encode(), svid.private_key.encode()))

    def put_trust(self, node: str, bundles: TrustBundles) -> None:
        """Publish the trust bundles with which a proxy verifies its peers."""
        self._put_secret(
            self._proxy_of(node),
            trust_secret({domain: bundles.pem(domain).encode() for domain in bundles.trust_domains}),
        )
        if node in self.gateways:
            self._put_secret(node, optional_trust_secret(bundles.pem(bundles.own).encode()))

    def _proxy_of(self, node: str) -> str:
        site = self.sites.get(node)
        return site.proxy if site is not None else node

    def _put_secret(self, node: str, secret: XdsResource) -> None:
        self.fleet.secrets.setdefault(node, {})[secret.name] = secret
        if not self.serves(node):
            return  # with only its secrets, a proxy would drop all other resources
        self.store.update(node, put=[secret])
        if self.has_closed(node):
            self.publish([node])  # it may have been this that its ports were closed for

    # Open requests

    def end_requests(self, node: str, port: int, caller: CallerCell) -> None:
        """Close the connections with requests of a caller at a port. The connections of other callers stay open."""
        self.fleet.ended.setdefault((node, port), Counter())[str(caller)] += 1
        for proxy in self._proxies_of(node):
            self.store.put(proxy, self._build(proxy))

    # Publishing

    @no_collection()
    def publish(self, nodes: Iterable[str]) -> None:
        """Compute the resources of these proxies again, and put them into the store."""
        for node in nodes:
            if node not in self.nodes or not self.serves(node):
                continue
            # The decisions of the authorizer for a gateway may have changed even if the resources are the same.
            change = self.store.put(node, self._build(node))
            if change or node in self.gateways:
                self.changes[node] += 1
            if EXTENSION in change.types:
                self.rule_changes[node] += 1

    def _build(self, node: str) -> list[XdsResource]:
        before = self.fleet.closures.at(node)
        resources = [*self.fleet.secrets.get(node, {}).values()]
        if node in self.gateways:
            resources += resources_of_gateway(self.fleet, node)
        elif node in self.waypoints:
            resources += self._ambient.of_waypoint(node)
        elif node not in self.sites:
            for workload in self.units_of(node):
                self._sidecars.note(workload)
                resources += self._ambient.of_pod(workload)
        else:
            resources += self._sidecars.inbound(node)
            resources += self._outbound.of(node)
        if self._on_closure is not None:
            self._report_closures(node, before, self._on_closure)
        return resources

    def _report_closures(self, node: str, before: Mapping[int, Closure], report: OnClosure) -> None:
        after = self.fleet.closures.at(node)
        for port, closure in after.items():
            if port not in before or before[port].parts != closure.parts:
                report(closure, True)
        gateway = self.gateways.get(node)
        ports = gateway.ports if gateway is not None else self._sidecars.ports_of(self.sites[node])
        for port in (before.keys() - after.keys()) & ports.keys():
            report(before[port], False)
