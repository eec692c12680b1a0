"""Tracks the acknowledgements of proxies, and makes the report of a replica."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from eastgate.authority.authority import programs_of
from eastgate.basics.records import dataclass
from eastgate.cluster import Workload, World
from eastgate.cluster.proxies import gateway_of_pod
from eastgate.control.closures import Closure
from eastgate.control.enforcement import Enforcement
from eastgate.control.gateway_nodes import gateway_node
from eastgate.controller.proxies.progress import (
    AppliedPolicy,
    ClosedPort,
    PassedPort,
    ProxyReport,
    RejectedResource,
    ReplicaReport,
)
from eastgate.envoy.config.probes import PROBE_PORT
from eastgate.envoy.plan.decisions import policy_name
from eastgate.envoy.server import AdsServer, Connected, Disconnected, ResourceStatus, ServerEvent, Settled
from eastgate.envoy.server.session import AuthenticatedProxy, AuthenticationError
from eastgate.ir.levels import at_port, rules_at

# The proxy of a pod: the sidecar of a workload, or one of the proxies of a Gateway.
#
# A node id is only a claim. The name, uid and account of the pod of a credential decide, in the current state of the
# world.


GATEWAY_PREFIX: Final = gateway_node("", "").removesuffix("/")


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """The pod that a credential proves, and its account."""

    namespace: str
    pod: str
    uid: str
    account: str

    @property
    def key(self) -> str:
        """Return its key among the workloads of the world."""
        return f"{self.namespace}/{self.pod}"


def identify(world: World, proven: PodIdentity, node_id: str) -> AuthenticatedProxy:
    """Return the proxy of a pod, if its node id is correct. Raises AuthenticationError."""
    pod = find_pod(world, proven)
    gateway = gateway_of_pod(world, pod)
    if gateway is not None:
        node = gateway_node(gateway.namespace, gateway.name)
        expected = AuthenticatedProxy(f"{node}/{pod.name}", node)
    else:
        expected = AuthenticatedProxy(pod.key, pod.key)
    if node_id != expected.name:
        raise AuthenticationError(f"the token belongs to {expected.name}, and not to this proxy")
    return expected


def find_pod(world: World, proven: PodIdentity) -> Workload:
    """Return the pod of a credential. Raises AuthenticationError if it is gone or was replaced."""
    pod = world.workloads.get(proven.key)
    if pod is None or not pod.is_pod or pod.derived:
        raise AuthenticationError(f"there is no pod {proven.key}")
    if not proven.uid or pod.uid != proven.uid:
        raise AuthenticationError(f"{proven.key} is not the pod of the token")
    if pod.service_account != proven.account:
        raise AuthenticationError(f"{proven.key} does not run as the account of the token")
    return pod


def split_proxy(proxy: str) -> str:
    """Return the node of a proxy by its name: the pods of a Gateway share its node."""
    return proxy.rpartition("/")[0] if proxy.startswith(GATEWAY_PREFIX) else proxy


class ProgressTracker:
    """Counts the changes of a replica, and records the last change that each proxy acknowledged entirely."""

    def __init__(self, replica: str, server: AdsServer, enforcement: Enforcement) -> None:
        self.revision = 0
        self._replica = replica
        self._server = server
        self._enforcement = enforcement
        self._policies: dict[str, AppliedPolicy] = {}
        self._pending: dict[str, int] = {}  # by proxy with pending resources: the first revision that it may lack
        self._connected_at: dict[str, float] = {}
        self._disconnected: dict[str, int] = {}  # the last acknowledged revision
        self._reports: dict[str, ProxyReport] = {}  # the last reports; unchanged reports stay the same objects

    @property
    def policies(self) -> Mapping[str, AppliedPolicy]:
        """Return the enforced policies by name."""
        return self._policies

    def apply(self, put: Mapping[str, tuple[int, str]], removed: Iterable[str] = ()) -> int:
        """Record that policies are enforced from now on, by name, with generation and uid; return the revision.

        Call it after their resources were published.
        """
        self.revision += 1
        for name in removed:
            self._policies.pop(name, None)
        for name, (generation, uid) in put.items():
            self._policies[name] = AppliedPolicy(generation, self.revision, uid)
        for proxy in self._connected_at.keys() - self._pending.keys() - self._disconnected.keys():
            if not self._server.is_settled(proxy):
                self._pending[proxy] = self.revision
        return self.revision

    def has_applied(self, name: str, generation: int, uid: str) -> bool:
        """Return whether a policy was recorded with this generation and uid."""
        applied = self._policies.get(name)
        return applied is not None and (applied.generation, applied.uid) == (generation, uid)

    def on_event(self, event: ServerEvent) -> None:
        """Handle an event of the server."""
        match event:
            case Connected(proxy):
                status = self._server.summary(proxy)
                since = status.connected_since if status is not None else None
                self._connected_at[proxy] = since.timestamp() if since is not None else 0.0
                self._disconnected.pop(proxy, None)
                self._pending[proxy] = 1  # it may be a new process without resources
            case Settled(proxy) if self._server.is_settled(
                proxy
            ):  # its acknowledgement may have opened ports, which are sent now
                self._pending.pop(proxy, None)
            case Disconnected(proxy):
                self._disconnected[proxy] = self._acknowledged(proxy)
                self._pending.pop(proxy, None)

    def forget(self, proxies: Iterable[str]) -> None:
        """Forget proxies that are gone."""
        for proxy in proxies:
            for known in (self._pending, self._connected_at, self._disconnected):
                known.pop(proxy, None)

    def _acknowledged(self, proxy: str) -> int:
        if proxy in self._disconnected:
            return self._disconnected[proxy]
        return self._pending[proxy] - 1 if proxy in self._pending else self.revision

    def report(self, proxies: Mapping[str, Sequence[str]]) -> ReplicaReport:
        """Return the report of this replica. `proxies` are all proxies that should exist, by node."""
        closed = self._closed_ports()
        reports = {
            proxy: self._report(proxy, node, closed.get(node, ()), passed)
            for node, names in proxies.items()
            for passed in (self._passed_ports(node),)
            for proxy in names
        }
        self._reports = reports
        return ReplicaReport(self._replica, self.revision, dict(self._policies), reports)

    def _report(
        self, proxy: str, node: str, closed: tuple[ClosedPort, ...], passed: tuple[PassedPort, ...]
    ) -> ProxyReport:
        before = self._reports.get(proxy)
        report = self._new_report(proxy, node, closed, passed)
        return before if before is not None and before == report else report

    def _new_report(
        self, proxy: str, node: str, closed: tuple[ClosedPort, ...], passed: tuple[PassedPort, ...]
    ) -> ProxyReport:
        status = self._server.summary(proxy)
        if status is None or proxy not in self._connected_at:
            return ProxyReport(proxy, node, closed=closed, passed=passed)
        return ProxyReport(
            proxy,
            node,
            connected=status.connected_since is not None,
            settled=status.settled,
            acknowledged=self._acknowledged(proxy),
            connected_at=self._connected_at[proxy],
            rejected=tuple(_rejected(resource) for resource in status.resources),
            closed=closed,
            lacking=() if status.settled else tuple(sorted(self._server.lacking(proxy))),
            passed=passed,
        )

    def _passed_ports(self, node: str) -> tuple[PassedPort, ...]:
        """Return the ports that a pod does not redirect, except the port for kubelet probes."""
        site = self._enforcement.sites.get(node)
        ports = sorted(site.uncaptured - {PROBE_PORT}) if site is not None else ()
        return tuple(PassedPort(port, self._deciding_at(node, port)) for port in ports)

    def _deciding_at(self, node: str, port: int) -> tuple[str, ...]:
        """Return the policies that decide at a port of a pod. A policy without rules denies at all ports."""
        engine = programs_of(self._enforcement.authority)
        layers = engine.program(node).layers
        deciding = {rule.origin.policy for layer in layers for rule in rules_at(layer, port)}
        chains = (chain for layer in layers for chain in layer.chains)
        with_rules = {rule.origin.policy for chain in chains for rule in chain.rules(observed=True)}
        deciding |= {attachment.policy.ref for attachment in engine.attached(node)} - with_rules
        return tuple(sorted(policy_name(policy) for policy in deciding if policy is not None))

    def _closed_ports(self) -> dict[str, tuple[ClosedPort, ...]]:
        by_node: dict[str, tuple[ClosedPort, ...]] = {}
        for (node, port), closure in sorted(self._enforcement.closed.items()):
            by_node[node] = (*by_node.get(node, ()), self._closed_port(node, port, closure))
        return by_node

    def _closed_port(self, node: str, port: int, closure: Closure) -> ClosedPort:
        deciding = set(self._enforcement.plans.of_port(node, port).policies)
        if node in self._enforcement.sites:
            for layer in programs_of(self._enforcement.authority).program(node).layers:
                rules = (rule for chain in at_port(layer, port).chains for rule in chain.rules(observed=True))
                deciding |= {policy_name(rule.origin.policy) for rule in rules if rule.origin.policy is not None}
        return ClosedPort(port, closure.reason, closure.policies, tuple(sorted(deciding)), closure.parts)


def _rejected(resource: ResourceStatus) -> RejectedResource:
    rejection = resource.rejection
    if rejection is None:
        raise AssertionError("a summary holds only rejected resources")
    policies = tuple(sorted(rejection.policies))
    return RejectedResource(resource.type_url, resource.name, rejection.message, policies)
