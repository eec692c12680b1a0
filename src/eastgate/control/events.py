"""The events of a mesh, for a live view, a log or a test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from eastgate.authority.auditing import Would
from eastgate.authority.changes import ChangedNames
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.control.access_log import Observation, rule_of, would_be
from eastgate.control.authorizer.log import task_failures
from eastgate.control.capturing import PortMode
from eastgate.control.closures import Closure

# Counts decisions and closed ports for Prometheus, in addition to the metrics of the control plane.


class MeshMetrics:
    """The metrics of a mesh."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._decisions = Counter(
            "eastgate_decisions",
            "Decisions of the proxies, by the deciding rule; without one, `policy` has the reason, such as none-of-3.",
            ["workload", "port", "level", "verdict", "policy", "rule"],
            registry=registry,
        )
        self._audits = Counter(
            "eastgate_audit_matches",
            "Requests that a policy in audit mode would have decided, and what it would have done.",
            ["workload", "port", "would", "policy", "rule"],
            registry=registry,
        )
        self._audit_denied = Counter(
            "eastgate_audit_denied",
            "Allowed requests and connections that a policy in audit mode would have denied.",
            ["workload", "port", "level", "policy"],
            registry=registry,
        )
        self.broken_saves = Counter(
            "eastgate_broken_saves", "Changes with errors, which were not enforced.", registry=registry
        )
        self.task_failures = task_failures(registry)
        self.enforced = Histogram(
            "eastgate_enforced_seconds",
            "Time from a saved change until every proxy enforces it.",
            buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
            registry=registry,
        )
        self._closed_ports = Gauge(
            "eastgate_closed_ports", "Ports that are closed because a policy there is not enforced.", registry=registry
        )
        self._not_enforced = Gauge(
            "eastgate_not_enforced",
            "Policies that are not in force at a port, which is closed instead.",
            ["workload", "port", "policy"],
            registry=registry,
        )
        self.restarts = Counter("eastgate_proxy_restarts", "Proxies that ended by themselves.", registry=registry)

    def count(self, observation: Observation) -> None:
        policy, index = rule_of(observation.decision)
        verdict = "allow" if observation.allowed else "deny"
        labels = (observation.workload, str(observation.port), observation.level, verdict, policy or observation.who)
        self._decisions.labels(*labels, "" if index is None else str(index)).inc()
        at = observation.workload, str(observation.port)
        for would in would_be(observation):
            rule = "" if would.rule is None else str(would.rule)
            for policy in would.policies:
                self._audits.labels(*at, would.verdict, policy, rule).inc()
            if would.changes and would.verdict is Would.DENY:
                for policy in would.policies or ("",):
                    self._audit_denied.labels(*at, observation.level, policy).inc()

    def not_enforced(self, closures: Collection[Closure]) -> None:
        """Set the closed ports, each with the policies at fault."""
        self._closed_ports.set(len(closures))
        self._not_enforced.clear()
        for closure in closures:
            for policy in closure.policies or ("",):
                self._not_enforced.labels(closure.workload, str(closure.port), policy).set(1)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


@dataclass(frozen=True, slots=True)
class Ready:
    """Every proxy has acknowledged its resources. Closed ports are reported before, by NotEnforced."""

    workloads: int
    policies: int
    milliseconds: float
    gateways: int = 0


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision of a proxy. `why` finds it by its `number`."""

    observation: Observation
    number: int = 0


@dataclass(frozen=True, slots=True)
class Enforced:
    """A change is in force everywhere. `touched` are the workloads whose proxies got new resources.

    `modes` are the workloads whose mode changed, as (before, now); before is None for a new workload.
    """

    milliseconds: float
    touched: tuple[str, ...]
    changes: ChangedNames = ChangedNames()
    modes: Mapping[str, tuple[PortMode | None, PortMode]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartlyEnforced:
    """A change is partly in force: the ports in `closed` cannot enforce their policies, and refuse every request.

    `missing` names the resources that a proxy has not accepted.
    """

    milliseconds: float
    touched: tuple[str, ...]
    changes: ChangedNames
    closed: tuple[str, ...]
    missing: tuple[str, ...]
    modes: Mapping[str, tuple[PortMode | None, PortMode]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokenChange:
    """A change has errors, and the previous policies stay in force."""

    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class NotEnforced:
    """A port was closed: a policy cannot be enforced there, or its proxy rejected it. `policies` are at fault."""

    workload: str
    port: int
    policies: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Noted:
    """A note for users; `trouble`: a problem that the user should solve."""

    message: str
    trouble: bool = False


MeshEvent: TypeAlias = Ready | Decided | Enforced | PartlyEnforced | BrokenChange | NotEnforced | Noted
OnEvent: TypeAlias = Callable[[MeshEvent], None]
