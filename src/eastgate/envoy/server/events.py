"""The events between the control plane and its proxies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from eastgate.basics.records import dataclass
from eastgate.envoy.server.resources import ORDER, short_type
from eastgate.envoy.server.status import ResourceRejection

# The metrics of the control plane, in a registry of their own, so that two servers do not mix.


_BUCKET_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.connected = Gauge("eastgate_xds_connected_proxies", "Proxies that are connected", registry=self.registry)
        self._responses = self._counter("responses", "Responses sent", "type")
        self._bytes = self._counter("sent_bytes", "Bytes of responses sent", "type")
        self._acks = self._counter("acks", "Responses that a proxy accepted", "type")
        self._nacks = self._counter("nacks", "Responses that a proxy rejected", "type")
        self._rejections = self._counter("rejections", "Resources that a proxy rejected", "type", "policy")
        self._refused = self._counter("refused_streams", "Streams that were refused", "reason")
        self._logs = Counter(
            "eastgate_access_log_messages",
            "Messages with access logs of proxies: read, unreadable, or dropped for lack of time.",
            ("result",),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "eastgate_xds_change_to_ack_seconds",
            "From a change of a resource to its acknowledgement by a proxy that was connected",
            ("type",),
            buckets=_BUCKET_SECONDS,
            registry=self.registry,
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"eastgate_xds_{name}", text, labels, registry=self.registry)

    def sent(self, type_url: str, size: int) -> None:
        """Count a response of this many bytes."""
        self._responses.labels(short_type(type_url)).inc()
        self._bytes.labels(short_type(type_url)).inc(size)

    def acked(self, type_url: str) -> None:
        self._acks.labels(short_type(type_url)).inc()

    def nacked(self, type_url: str) -> None:
        self._nacks.labels(short_type(type_url)).inc()

    def rejected(self, type_url: str, rejection: ResourceRejection) -> None:
        """Count a rejected resource, for each policy at fault, or for none."""
        for policy in rejection.policies or ("",):
            self._rejections.labels(short_type(type_url), policy).inc()

    def forget(self, policy: str) -> None:
        """Remove the series of a policy that is gone."""
        for type_url in ORDER:
            self._rejections.remove(short_type(type_url), policy)

    def took(self, type_url: str, seconds: float) -> None:
        """Observe the time from a change to its acknowledgement."""
        self._seconds.labels(short_type(type_url)).observe(seconds)

    def received_log(self, result: str) -> None:
        """Count a message with access logs."""
        self._logs.labels(result).inc()

    def refused(self, reason: str) -> None:
        self._refused.labels(reason).inc()


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Connected:
    """A proxy has authenticated."""

    node: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A proxy's stream has ended."""

    node: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A proxy has answered for all its resources."""

    node: str


@dataclass(frozen=True, slots=True)
class Acked:
    """A proxy has accepted a response. `versions` has None for removed resources."""

    node: str
    type_url: str
    versions: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class ResourceRejected:
    """A proxy has rejected a resource, sent by itself."""

    node: str
    type_url: str
    name: str
    rejection: ResourceRejection


ServerEvent: TypeAlias = Connected | Disconnected | Settled | Acked | ResourceRejected
OnServerEvent: TypeAlias = Callable[[ServerEvent], None]


class Events:
    """The listeners. The other listeners are called even if one fails."""

    def __init__(self) -> None:
        self._listeners: list[OnServerEvent] = []

    def listen(self, listener: OnServerEvent) -> Callable[[], None]:
        """Call `listener` with every event. The returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def emit(self, event: ServerEvent) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                fields = {"event": type(event).__name__, "proxy": event.node}
                _LOG.exception("a listener failed on %s", type(event).__name__, extra=fields)
