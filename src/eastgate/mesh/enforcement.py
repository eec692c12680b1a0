"""The control plane's part that knows policies: an authority and the sites of proxies in, resources for each out.

It starts no process and speaks to nobody: it writes into the store, and whoever serves the store does the rest. A
changed policy is worked out again for the workloads that it touches, and reaches the store only where it makes a
difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

from eastgate.authority import Authority
from eastgate.collection import no_collection
from eastgate.dialects import Policy
from eastgate.dialects.rejected import Policy as Rejected
from eastgate.engine.compiled import Program
from eastgate.identity import Svid, TrustBundles
from eastgate.mesh.closures import TRUST, Closure, Closures, closing_of
from eastgate.mesh.sites import Site, identity_of, known_identities, upstreams
from eastgate.policy import PolicyRef
from eastgate.settings import OpenRequests
from eastgate.symbolic.callers import CallerCell
from eastgate.targets.envoy import Inexpressible, PortPlan, plan_port
from eastgate.targets.envoy.decisions import policy_name
from eastgate.xds.doors import Door
from eastgate.xds.secrets import svid_secret, trust_secret
from eastgate.xds.server.resources import Key, Resource
from eastgate.xds.server.status import ProxyStatus, Rejection
from eastgate.xds.server.store import Store
from eastgate.xds.sidecar import Outbound, deciding, inbound_resources, outbound_resources
from eastgate.xds.tokens import TokenIdentity

__all__ = ["Enforcement"]


class Enforcement:
    """Policies, enforced at sites. Callers without a certificate are known by their address, where `by_address` says
    so, or else by their token.
    """

    def __init__(
        self, authority: Authority, store: Store, *, by_address: bool = False, tokens: TokenIdentity | None = None
    ) -> None:
        self.authority = authority
        self.store = store
        self.sites: Mapping[str, Site] = {}
        self._closures = Closures()
        self._by_address = by_address
        self.tokens = tokens
        self._secrets: dict[str, dict[str, Resource]] = {}
        self._plans: WeakKeyDictionary[Program, dict[int, PortPlan]] = WeakKeyDictionary()
        self._decided: WeakKeyDictionary[PortPlan, tuple[Resource, ...]] = WeakKeyDictionary()
        self._outbound: dict[str, tuple[Resource, ...]] = {}
        self._known: frozenset[str] = frozenset()
        self.changes: Counter[str] = Counter()  # how often a proxy was told of other policies
        self._ended: dict[tuple[str, int], Counter[str]] = {}

    # What changes

    def begin(self, authority: Authority, sites: Mapping[str, Site]) -> None:
        """Enforce this from now on, at these sites and no others."""
        gone = set(self.sites) - set(sites)
        self.authority, self.sites = authority, sites
        self._known = known_identities(authority.world, authority.settings)
        self._plans.clear()
        self._outbound.clear()
        for node in gone:
            self._secrets.pop(node, None)
            self._closures.forget(node)
            self._ended = {where: ended for where, ended in self._ended.items() if where[0] != node}
            self.store.forget(node)
        self.publish(sites)

    @property
    def closed(self) -> Mapping[tuple[str, int], Closure]:
        """The ports that are closed because something of them is not enforced, by workload and number."""
        return self._closures.closed

    def put_policy(self, policy: Policy) -> frozenset[str]:
        """Add or replace one policy; tells whose proxies that concerns."""
        return self.change(put=(policy,))

    def change(self, *, put: Iterable[Policy] = (), remove: Iterable[PolicyRef] = ()) -> frozenset[str]:
        """Change some policies, which are published once; tells whose proxies that concerns."""
        engine = self.authority.engine
        points = [engine.remove_policy(ref) for ref in remove] + [engine.put_policy(policy) for policy in put]
        touched = frozenset(point for some in points for point in some if point in self.sites)
        self.publish(touched)
        return touched

    # What proxies make of it

    def reject(self, node: str, key: Key, rejection: Rejection) -> None:
        """Close what a proxy would not have as it should be."""
        if node in self.sites:
            self._closures.reject(node, key, rejection)
            self.publish([node])

    def accept(self, node: str, status: Callable[[], ProxyStatus | None]) -> bool:
        """Open the ports that were closed and of which the proxy has everything now; tells whether there are any."""
        if node not in self.sites or not self._closures.is_shut(node):
            return False
        found = status()
        if found is not None and self._closures.pardon(node, found.resources):
            self.publish([node])
            found = status()
        known = found.resources if found is not None else ()
        states = {(one.type_url, one.name): one.state for one in known if one.confirmed}
        opened = self._closures.open(node, states)
        if opened:
            self.publish([node])
        return opened

    # Certificates

    def put_svid(self, node: str, svid: Svid) -> None:
        """The certificate of a workload, the first or a new one."""
        self._put_secret(node, svid_secret(svid.chain.encode(), svid.private_key.encode()))

    def put_trust(self, node: str, bundles: TrustBundles) -> None:
        """Whom a proxy believes."""
        self._put_secret(node, trust_secret({domain: bundles.pem(domain).encode() for domain in bundles.trust_domains}))

    def _put_secret(self, node: str, secret: Resource) -> None:
        self._secrets.setdefault(node, {})[secret.name] = secret
        self.store.update(node, put=[secret])
        if node in self.sites and self._closures.is_shut(node):
            self.publish([node])  # it may have been this that its ports were closed for

    # Open requests

    def end_requests(self, node: str, port: int, caller: CallerCell) -> None:
        """Close the connections on which a caller makes requests at a port, and nobody else's."""
        self._ended.setdefault((node, port), Counter())[str(caller)] += 1
        self.store.put(node, self._all(node))

    # What is published

    def publish(self, nodes: Iterable[str]) -> None:
        """Work out again what these proxies are told."""
        with no_collection():
            self._publish(nodes)

    def _publish(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            if self.store.put(node, self._all(node)):
                self.changes[node] += 1

    def _all(self, node: str) -> list[Resource]:
        return [*self._secrets.get(node, {}).values(), *self._resources(node)]

    def _resources(self, node: str) -> list[Resource]:
        site = self.sites[node]
        known = self._addresses(node) if self._by_address else ()
        trust = [one for one in self._secrets.get(node, {}).values() if one.key == TRUST]
        found: list[Resource] = []
        self._closures.keep(node, site.ports)
        ends = self.authority.settings.open_requests is OpenRequests.END
        for port, bound in sorted(site.ports.items()):
            ended = self._ended.get((node, port), Counter())
            door = Door(node, site.address, port, bound, known, self.tokens, ends, ended)
            plan = self.plan(node, port)
            resources = list(inbound_resources(door, plan, site.apps[port], self._deciding(plan)))
            found += self._closures.guard(node, port, resources, trust, closing_of(door))
            if unreadable := self.authority.rejected_at([node]):
                self._closures.closed[node, port] = _unreadable(node, port, unreadable)
            if plan.refused is not None:
                self._closures.closed[node, port] = _refused(node, plan, plan.refused)
        return [*found, *self._calling_out(site)] if site.calls_out else found

    def _deciding(self, plan: PortPlan) -> tuple[Resource, ...]:
        """What decides: the same for all workloads with the same plan."""
        found = self._decided.get(plan)
        if found is None:
            found = self._decided[plan] = deciding(plan, self.tokens)
        return found

    def _calling_out(self, site: Site) -> tuple[Resource, ...]:
        """The way out, which no policy changes."""
        if site.workload not in self._outbound:
            world = self.authority.world
            namespace = world.workloads[site.workload].namespace
            services = upstreams(world, self.sites, self.authority.settings, namespace)
            self._outbound[site.workload] = tuple(outbound_resources(Outbound(site.workload, site.address), services))
        return self._outbound[site.workload]

    def plan(self, node: str, port: int) -> PortPlan:
        """What is decided at a port. Workloads of one class share their plans."""
        program = self.authority.engine.program(node)
        plans = self._plans.setdefault(program, {})
        if port not in plans:
            plans[port] = plan_port(program.layers, port, self.authority.settings, self._known)
        return plans[port]

    def _addresses(self, node: str) -> tuple[tuple[str, str], ...]:
        """Every other workload, by its address."""
        found = (
            (site.address, identity_of(self.authority.world.workloads[key], self.authority.settings))
            for key, site in sorted(self.sites.items())
            if key != node
        )
        return tuple((address, identity) for address, identity in found if identity is not None)


def _unreadable(node: str, port: int, policies: Sequence[Rejected]) -> Closure:
    """Describe a port that is closed because policies about it cannot be read."""
    names = tuple(sorted(str(one.ref) for one in policies))
    said = policies[0].errors[0].message if policies[0].errors else "it has errors"
    return Closure(node, port, names, f"a policy that targets it cannot be read: {said}")


def _refused(node: str, plan: PortPlan, refused: Inexpressible) -> Closure:
    """Describe a port that is closed because of what its policies ask for."""
    return Closure(node, plan.port, tuple(sorted(map(policy_name, refused.policies))), f"{refused} [{refused.code.id}]")
