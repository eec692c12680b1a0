"""Counts checks for Prometheus. Several processes write to one folder, and each of them can tell the sum."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from eastgate.control.authorizer.checks import ProxyAnswer

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable by which prometheus-client knows the folder that several processes share."""

_BUCKETS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


def task_failures(registry: CollectorRegistry | None) -> Counter:
    """Return the counter of background tasks that failed."""
    text = "Background tasks that failed and began again, by name."
    return Counter("eastgate_task_failures", text, ["task"], registry=registry)


class AuthorizerMetrics:
    """The metrics of an authorizer."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._registry = registry or CollectorRegistry()
        self._checks = Counter(
            "eastgate_checks",
            "Checks that were answered, by protocol, verdict and the status of a denial.",
            ["protocol", "verdict", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "eastgate_check_seconds",
            "From a check until its answer, without the network to the proxy.",
            ["protocol"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.refused = Counter(
            "eastgate_checks_refused", "Checks that were refused without a decision.", ["why"], registry=self._registry
        )
        self.reloads = Counter("eastgate_policy_reloads", "Saves that came in force.", registry=self._registry)
        self.reload_failures = Counter(
            "eastgate_policy_reload_failures",
            "Saves that did not, because they have errors.",
            registry=self._registry,
        )
        self.task_failures = task_failures(self._registry)
        self.policies = Gauge(
            "eastgate_policies", "Policies that are in force.", registry=self._registry, multiprocess_mode="livemax"
        )
        self._by_answer: dict[tuple[str, int], Counter] = {}
        self._by_protocol = {name: self._seconds.labels(name) for name in ("grpc", "http")}

    def count(self, protocol: str, answer: ProxyAnswer, seconds: float) -> None:
        """Count an answer."""
        key = (protocol, answer.status)
        counter = self._by_answer.get(key)
        if counter is None:
            verdict = "allow" if answer.allowed else "deny"
            counter = self._by_answer[key] = self._checks.labels(protocol, verdict, str(answer.status))
        counter.inc()
        self._by_protocol[protocol].observe(seconds)
        if answer.why is not None:
            self.refused.labels(answer.why).inc()

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format: those of all processes, where there are several."""
        if os.environ.get(SHARED_FOLDER):
            shared = CollectorRegistry()
            MultiProcessCollector(shared)  # type: ignore[no-untyped-call] # it has no types
            return generate_latest(shared)
        return generate_latest(self._registry)
