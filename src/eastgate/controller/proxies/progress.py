"""Acknowledgements as data: the generation of each policy that each proxy enforces, and the reason if it does not.

Proxies connect to any replica of the control plane, but only one replica writes status. So each replica makes a
`ReplicaReport`, which is sent as JSON. The leader merges the reports and calls `MeshReport.progress`.

A replica counts what it applies: each change of policies has a revision. Each proxy has a last acknowledged revision,
with which it also acknowledged all earlier ones. A policy is in force at a proxy if the proxy acknowledged the revision
of that generation, or a later one. Revisions of two replicas are not comparable, so a report holds both sides of the
comparison.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final

import msgspec

from eastgate.basics.records import dataclass

_FORMAT: Final = 1


class ProgressState(enum.StrEnum):
    """The progress of a policy at a proxy, or at all proxies of a node: then the worst one counts, in this order."""

    ENFORCED = "enforced"
    WAITING = "waiting"  # the proxy has not acknowledged it yet
    CLOSED = "closed"  # the proxy refuses every connection to a port at which the policy decides
    PASSED = "passed"  # the pod does not redirect a port at which the policy decides
    REJECTED = "rejected"  # the proxy rejected a resource of the policy
    DISCONNECTED = "disconnected"  # no replica serves the proxy: its configuration is unknown
    NOT_APPLIED = "not-applied"  # the replica of the proxy has not applied this generation
    NO_ADDRESS = "no-address"  # the pod is not reachable yet
    NO_PROXY = "no-proxy"  # the node has no proxy


_ORDER: Final = {state: rank for rank, state in enumerate(ProgressState)}


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """The generation of a policy that a replica enforces, and its revision.

    `uid` distinguishes a policy from a later one of the same name.
    """

    generation: int
    revision: int
    uid: str = ""


@dataclass(frozen=True, slots=True)
class RejectedResource:
    """A resource whose wanted version a proxy rejected, with the policies from which it was made."""

    type_url: str
    name: str
    message: str
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClosedPort:
    """A closed port: every connection is refused, or with `parts`, those to some routes and backends.

    `at_fault` are the policies that cause it. `policies` are all policies that decide there.
    """

    port: int
    reason: str
    at_fault: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    def concerns(self, policy: str) -> bool:
        """Return whether this port keeps a policy from being enforced as written."""
        return policy in self.at_fault or (not self.parts and policy in self.policies)


@dataclass(frozen=True, slots=True)
class PassedPort:
    """A port whose connections bypass the proxy, and the policies that would decide there."""

    port: int
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProxyReport:
    """The state of a proxy according to one replica.

    `proxy` is its name in the xDS protocol. `node` is the name of the workload or Gateway that it serves: the pods of a
    Gateway are several proxies of one node. `acknowledged` is the last revision of the replica that the proxy has
    accepted or rejected completely. `lacking` are policies that the proxy must enforce again after another change, and
    has not acknowledged. `connected_at` is a time in seconds since 1970, which is kept after a disconnection.
    """

    proxy: str
    node: str
    connected: bool = False
    settled: bool = False
    acknowledged: int = 0
    connected_at: float = 0.0
    rejected: tuple[RejectedResource, ...] = ()
    closed: tuple[ClosedPort, ...] = ()
    lacking: tuple[str, ...] = ()
    passed: tuple[PassedPort, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return _to_plain(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ProxyReport:
        """Read it from plain data. Raises ValueError."""
        return msgspec.convert(data, cls)


@dataclass(frozen=True, slots=True)
class PolicyProgress:
    """The progress of a generation of a policy at a node. `proxy` is the proxy that `detail` is about, or None.

    `detail` is for users.
    """

    state: ProgressState
    proxy: str | None = None
    detail: str = ""

    @property
    def enforced(self) -> bool:
        """Return whether the policy is in force at the node."""
        return self.state is ProgressState.ENFORCED


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """The report of one replica of the control plane: its applied policies, and the state of the proxies.

    `proxies` are all proxies that should exist, by name, also those that are not connected to this replica.
    """

    replica: str
    revision: int = 0
    policies: Mapping[str, AppliedPolicy] = field(default_factory=dict, hash=False)
    proxies: Mapping[str, ProxyReport] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"format": _FORMAT, **_to_plain(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ReplicaReport:
        """Read it from plain data. Raises ValueError."""
        if data.get("format") != _FORMAT:
            raise ValueError("a report of another format")
        report = msgspec.convert(data, cls)
        if any(name != proxy.proxy for name, proxy in report.proxies.items()):
            raise ValueError("a proxy under another name")
        return report

    def progress(self, policy: str, generation: int, proxy: str, uid: str = "") -> PolicyProgress:
        """Return the progress of a generation of a policy at a proxy, according to this replica."""
        report = self.proxies.get(proxy)
        if report is None:
            return PolicyProgress(ProgressState.NO_PROXY, proxy, "there is no such proxy")
        if not report.connected:
            return PolicyProgress(ProgressState.DISCONNECTED, proxy, "the proxy is not connected to the control plane")
        applied = self.policies.get(policy)
        if applied is None or applied.generation < generation or (uid and applied.uid != uid):
            detail = f"{self.replica} has not applied generation {generation} yet"
            return PolicyProgress(ProgressState.NOT_APPLIED, proxy, detail)
        for resource in report.rejected:
            if policy in resource.policies:
                return PolicyProgress(ProgressState.REJECTED, proxy, f"{resource.name}: {resource.message}")
        for closed in report.closed:
            if closed.concerns(policy):
                where = ", ".join((f"port {closed.port}", *closed.parts))
                return PolicyProgress(ProgressState.CLOSED, proxy, f"{where} is closed: {closed.reason}")
        for passed in report.passed:
            if policy in passed.policies:
                detail = f"port {passed.port} is not redirected to the proxy"
                return PolicyProgress(ProgressState.PASSED, proxy, detail)
        if report.acknowledged < applied.revision or policy in report.lacking:
            return PolicyProgress(ProgressState.WAITING, proxy, "the proxy has not acknowledged it yet")
        return PolicyProgress(ProgressState.ENFORCED, proxy)


@dataclass(frozen=True, slots=True)
class MeshReport:
    """The state of all proxies: for each proxy, the report of its replica."""

    replicas: tuple[ReplicaReport, ...] = ()
    serving: Mapping[str, ReplicaReport] = field(default_factory=dict, hash=False)  # by proxy
    by_node: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)  # proxies

    @property
    def proxies(self) -> Mapping[str, ProxyReport]:
        """Return the report of each proxy."""
        return {proxy: replica.proxies[proxy] for proxy, replica in self.serving.items()}

    def progress(self, policy: str, generation: int, node: str, uid: str = "") -> PolicyProgress:
        """Return the progress of a generation of a policy at a node: the worst progress at any of its proxies."""
        each = self.progress_by_proxy(policy, generation, node, uid)
        if not each:
            return PolicyProgress(ProgressState.NO_PROXY, None, f"{node} has no proxy")
        return max(each, key=lambda progress: _ORDER[progress.state])

    def progress_by_proxy(self, policy: str, generation: int, node: str, uid: str = "") -> tuple[PolicyProgress, ...]:
        """Return the progress of a generation of a policy at each proxy of a node."""
        return tuple(
            self.serving[proxy].progress(policy, generation, proxy, uid) for proxy in self.by_node.get(node, ())
        )


def merge(reports: Iterable[ReplicaReport]) -> MeshReport:
    """Merge the reports of several replicas. Of two reports of one replica, the last counts.

    A proxy belongs to the replica to which it connected last, among those to which it is connected.
    """
    replicas = {report.replica: report for report in reports}
    serving: dict[str, ReplicaReport] = {}
    for name in sorted(replicas):
        for proxy, report in replicas[name].proxies.items():
            other = serving.get(proxy)
            if other is None or _freshness(other.proxies[proxy]) < _freshness(report):
                serving[proxy] = replicas[name]
    by_node: dict[str, list[str]] = {}
    for proxy in sorted(serving):
        by_node.setdefault(serving[proxy].proxies[proxy].node, []).append(proxy)
    return MeshReport(
        tuple(replicas[name] for name in sorted(replicas)),
        serving,
        {node: tuple(proxies) for node, proxies in by_node.items()},
    )


def _freshness(report: ProxyReport) -> tuple[bool, float]:
    return report.connected, report.connected_at


def _to_plain(report: object) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(report)
    return plain
