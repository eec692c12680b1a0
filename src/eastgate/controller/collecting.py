"""The metrics of a replica that are computed for each scrape: they are never stale, and need no removal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from eastgate._version import __version__
from eastgate.controller.election import Election, Heartbeat
from eastgate.controller.proxies.sites import proxies_of

if TYPE_CHECKING:
    from eastgate.controller.replica import Replica

_CHECKS: Final = frozenset({"eastgate_checks", "eastgate_checks_refused", "eastgate_check_seconds"})
_Labels = TypeVar("_Labels", bound=tuple[str, ...])
_RESULTS: Final = ("written", "unchanged", "conflicts", "failed", "behind")


def expected_proxies(replica: Replica) -> list[str]:
    """Return the names of the proxies that should be connected to any replica."""
    control = replica.control
    world = control.enforcement.authority.world
    return [proxy for node in control.enforcement.nodes for proxy in proxies_of(world, node)]


class ReplicaCollector(Collector):
    """The collector of a replica. `election` and `heartbeat` may start later than the collector."""

    def __init__(
        self, replica: Replica, election: Callable[[], Election | None], heartbeat: Callable[[], Heartbeat | None]
    ) -> None:
        self._replica = replica
        self._election = election
        self._heartbeat = heartbeat

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the names are known only at a scrape."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics with their current values."""
        yield _gauge("info", "The version of this replica.", ["version"], {(__version__,): 1})
        yield from self._of_source()
        yield from self._of_policies()
        yield from self._of_proxies()
        yield from self._of_certificates()
        yield from self._of_process()
        yield from (metric for metric in self._replica.metrics.check_registry.collect() if metric.name in _CHECKS)

    def _of_source(self) -> Iterator[Metric]:
        follower = self._replica.source.follower
        lags = {(resource.group, resource.kind): seconds for resource, seconds in follower.lags.items()}
        of_kind = ["group", "kind"]
        yield _gauge(
            "watch_lag_seconds", "Seconds since the last message of the API server about a kind.", of_kind, lags
        )
        yield _gauge("objects", "Objects that are followed.", of_kind, follower.counts)
        faults = Counter((ref.group, ref.kind) for ref in self._replica.source.faults)
        yield _gauge("faulty_objects", "Objects that were left out because of errors.", of_kind, faults)

    def _of_policies(self) -> Iterator[Metric]:
        statuses = self._replica.statuses
        states = Counter((ref.kind, state) for ref, state in statuses.writer.states.items())
        text = "Policies by the reason of their worst condition, as the leader has assessed them."
        yield _gauge("policy_states", text, ["kind", "state"], states)
        written = CounterMetricFamily(
            "eastgate_status_writes", "Checked statuses of policies, by result.", labels=["result"]
        )
        for result in _RESULTS:
            written.add_metric([result], statuses.writer.counts[result])
        yield written
        yield _single(
            "full_statuses", "Policies whose status has no space left for Eastgate.", len(statuses.writer.full)
        )
        invariants = Counter((state,) for state in self._replica.invariant_states.values())
        text = "Invariants by the reason of their condition, as the leader has evaluated them."
        yield _gauge("invariants", text, ["state"], invariants)
        plan = statuses.view.native
        outcomes = Counter((str(outcome.state),) for outcome in plan.outcomes) if plan is not None else Counter()
        yield _gauge("native_policies", "Policies by their state in the mesh.", ["state"], outcomes)

    def _of_proxies(self) -> Iterator[Metric]:
        control = self._replica.control
        expected = expected_proxies(self._replica)
        settled = sum(control.server.is_settled(proxy) for proxy in expected)
        yield _single("expected_proxies", "Proxies that should be connected to some replica.", len(expected))
        yield _single("settled_proxies", "Proxies that have all resources of this replica.", settled)
        closures = control.enforcement.closed.values()
        yield _single("closed_ports", "Ports that are closed because a policy there is not enforced.", len(closures))
        by_policy = Counter((policy,) for closure in closures for policy in closure.policies)
        yield _gauge("policy_closed_ports", "Ports that are closed because of a policy.", ["policy"], by_policy)

    def _of_certificates(self) -> Iterator[Metric]:
        ends = {(name,): end.timestamp() for name, end in self._replica.certificate_ends().items()}
        text = "Expiry of a certificate of the control plane, in seconds since 1970."
        yield _gauge("certificate_end_timestamp_seconds", text, ["certificate"], ends)

    def _of_process(self) -> Iterator[Metric]:
        election, heartbeat = self._election(), self._heartbeat()
        yield _single("leader", "Whether this replica leads.", election is not None and election.leads)
        if heartbeat is not None:
            yield _single("loop_lag_seconds", "Delay of the event loop.", heartbeat.lag)


def _single(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"eastgate_{name}", text, value=float(value))


def _gauge(name: str, text: str, labels: list[str], values: Mapping[_Labels, float]) -> Metric:
    family = GaugeMetricFamily(f"eastgate_{name}", text, labels=labels)
    for label_values in sorted(values):
        family.add_metric(list(label_values), float(values[label_values]))
    return family
