"""Writes decisions and events as JSON, one object in a line."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import BinaryIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from eastgate.control.authorizer.checks import ProxyAnswer

# Counts checks for Prometheus. Several processes write to one folder, and each can return the sum.


SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the folder that several processes share (prometheus-client)."""

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
            "Time from a check to its answer, without the network to the proxy.",
            ["protocol"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.refused = Counter(
            "eastgate_checks_refused", "Checks that were refused without a decision.", ["why"], registry=self._registry
        )
        self.reloads = Counter("eastgate_policy_reloads", "Saved changes that took effect.", registry=self._registry)
        self.reload_failures = Counter(
            "eastgate_policy_reload_failures",
            "Saved changes with errors, which did not take effect.",
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
        """Return all metrics in Prometheus' text format, of all processes if there are several."""
        if os.environ.get(SHARED_FOLDER):
            shared = CollectorRegistry()
            MultiProcessCollector(shared)  # type: ignore[no-untyped-call] # it has no types
            return generate_latest(shared)
        return generate_latest(self._registry)


class Logged(StrEnum):
    """The decisions that the log contains."""

    ALL = "all"
    DENIED = "denied"
    NONE = "none"


class LazyRecord(Mapping[str, object]):
    """The log record of a decision, built when it is read. Most decisions are not logged."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Mapping[str, object]]) -> None:
        self._make = make
        self._made: Mapping[str, object] | None = None

    def __getitem__(self, name: str) -> object:
        return self._record()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._record())

    def __len__(self) -> int:
        return len(self._record())

    def _record(self) -> Mapping[str, object]:
        if self._made is None:
            self._made = self._make()
        return self._made


class DecisionLog:
    """A log with one JSON object in a line, for several threads. A closed stream stops nothing."""

    def __init__(self, stream: BinaryIO, logged: Logged = Logged.ALL) -> None:
        self._stream = stream
        self._logged = logged
        self._lock = threading.Lock()

    def decided(self, answer: ProxyAnswer, protocol: str, seconds: float) -> None:
        """Write a decision."""
        if self._logged is Logged.ALL or (self._logged is Logged.DENIED and not answer.allowed):
            record = {**answer.record, "protocol": protocol, "milliseconds": round(seconds * 1000, 3)}
            self.record(record)

    def record(self, record: Mapping[str, object]) -> None:
        """Write a record without its unknown values."""
        self._write({name: value for name, value in record.items() if value is not None and value != {}})

    def event(self, name: str, **more: object) -> None:
        """Write an event."""
        self._write({"event": name, "time": datetime.now(UTC).isoformat(timespec="milliseconds"), **more})

    def _write(self, record: Mapping[str, object]) -> None:
        line = json.dumps(record, default=str).encode() + b"\n"
        try:
            with self._lock:
                self._stream.write(line)
                self._stream.flush()
        except (OSError, ValueError):
            pass
