"""Acknowledgements as data: which generation of which policy each proxy enforces, and if it does not, why.

Proxies connect to any replica of the control plane, and one replica writes status. So each replica makes a
`ReplicaReport`, which travels as JSON; the leader merges them and asks `MeshReport.progress`.

A replica counts what it applies: each change of policies has a revision, and each proxy has the last revision at which
it had acknowledged everything. A policy is in force at a proxy if the proxy has acknowledged the revision of that
generation, or a later one. Revisions of two replicas are not comparable; a report keeps both sides of the comparison.
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
    """How far a policy has come at a proxy, or at all proxies of a node: there the worst of them, in this order."""

    ENFORCED = "enforced"
    WAITING = "waiting"  # the proxy has not acknowledged it yet
    CLOSED = "closed"  # the proxy refuses every connection to a port where the policy decides
    PASSED = "passed"  # the pod does not redirect a port to the proxy where the policy decides
    REJECTED = "rejected"  # the proxy has rejected a resource that was made from the policy
    DISCONNECTED = "disconnected"  # the proxy is connected to no replica: what it enforces is not known
    NOT_APPLIED = "not-applied"  # the replica that serves the proxy has not applied this generation
    NO_ADDRESS = "no-address"  # a pod that is not reachable yet
    NO_PROXY = "no-proxy"  # nothing enforces policies there


_ORDER: Final = {state: rank for rank, state in enumerate(ProgressState)}


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """The generation of a policy that a replica enforces, and the revision that brought it.

    `uid` tells apart a policy and another of its name that was created later.
    """

    generation: int
    revision: int
    uid: str = ""


@dataclass(frozen=True, slots=True)
class RejectedResource:
    """A resource whose wanted version a proxy has rejected, with the policies that it was made from."""

    type_url: str
    name: str
    message: str
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClosedPort:
    """A port at which every connection is refused, or, where it has `parts`, those to some routes and backends.

    `at_fault` are the policies that it is closed for, `policies` all those that decide there.
    """

    port: int
    reason: str
    at_fault: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    def concerns(self, policy: str) -> bool:
        """Return whether a policy is not enforced as it is written because of this."""
        return policy in self.at_fault or (not self.parts and policy in self.policies)


@dataclass(frozen=True, slots=True)
class PassedPort:
    """A port whose connections get past the proxy, and the policies that would decide there."""

    port: int
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProxyReport:
    """One proxy, as one replica sees it.

    `proxy` is its name on the wire, `node` that of what it enforces: the pods of a Gateway are several proxies of one
    node. `acknowledged` is the last revision of the replica of which the proxy has everything, or has rejected it.
    `lacking` are policies that it is to enforce anew, by a change of something else, and has not acknowledged.
    `connected_at` is a time in seconds since 1970; it is kept after the proxy has disconnected.
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
    """How far a generation of a policy has come at a node. `proxy` is the one that `detail` is about, if it is one.

    `detail` is for people.
    """

    state: ProgressState
    proxy: str | None = None
    detail: str = ""

    @property
    def enforced(self) -> bool:
        """Return whether the policy is in force there."""
        return self.state is ProgressState.ENFORCED


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What one replica of the control plane has applied, and what the proxies have made of it.

    `proxies` are all that should exist, connected to this replica or not, by their names on the wire.
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
        """Return how far a generation of a policy has come at a proxy, as far as this replica knows."""
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
    """What all proxies enforce: for each the report of the replica that serves it."""

    replicas: tuple[ReplicaReport, ...] = ()
    serving: Mapping[str, ReplicaReport] = field(default_factory=dict, hash=False)  # by proxy
    by_node: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)  # proxies

    @property
    def proxies(self) -> Mapping[str, ProxyReport]:
        """Return the report of each proxy."""
        return {proxy: replica.proxies[proxy] for proxy, replica in self.serving.items()}

    def progress(self, policy: str, generation: int, node: str, uid: str = "") -> PolicyProgress:
        """Return how far a generation of a policy has come at a node: enforced only if it is by each of its proxies."""
        each = self.progress_by_proxy(policy, generation, node, uid)
        if not each:
            return PolicyProgress(ProgressState.NO_PROXY, None, f"{node} has no proxy")
        return max(each, key=lambda progress: _ORDER[progress.state])

    def progress_by_proxy(self, policy: str, generation: int, node: str, uid: str = "") -> tuple[PolicyProgress, ...]:
        """Return how far a generation of a policy has come at each proxy of a node."""
        return tuple(
            self.serving[proxy].progress(policy, generation, proxy, uid) for proxy in self.by_node.get(node, ())
        )


def merge(reports: Iterable[ReplicaReport]) -> MeshReport:
    """Merge the reports of several replicas; of two of the same replica the last counts.

    A proxy belongs to the replica that it connected to last, of those that it is connected to.
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
