"""Receives the access logs of proxies (Envoy's ALS), beside their configuration and with the same authentication.

A proxy can report only about itself. Reading its records takes at most a share of the time of the event loop: further
records are dropped, and counted. Half of the saved-up time is reserved for proxies that use little of it: a flood from
one workload hides no records of others. Records never delay other work, and no work waits for them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from envoy.service.accesslog.v3 import als_pb2

from eastgate.envoy.server.events import Metrics
from eastgate.envoy.server.session import AuthenticatedProxy

LOG_SERVICE: Final = "envoy.service.accesslog.v3.AccessLogService"
LOG_METHOD: Final = "StreamAccessLogs"
OnRecord: TypeAlias = Callable[[AuthenticatedProxy, Mapping[str, Any]], None]
"""A callback for the record of each decision, in the form of the lines that proxies write."""

_LOG = logging.getLogger(__name__)
_ABSENT: Final = ("", "-")  # Envoy's texts for a missing value
_ANY_PORT: Final = "0"
_TIME_SHARE: Final = 0.1  # of the time of the loop
_MAX_SAVED_SECONDS: Final = 0.5  # of work at once after a quiet time
_RESERVED_SECONDS: Final = _MAX_SAVED_SECONDS / 2  # reserved for proxies that used little time lately
_HALF_LIFE_SECONDS: Final = 1.0  # after which work counts for half
_NEGLIGIBLE_SECONDS: Final = 1e-5  # seconds of work


def node_of_log(body: bytes) -> str:
    """Return the node id in the first message of a stream; empty for an invalid message."""
    try:
        node_id: str = als_pb2.StreamAccessLogsMessage.FromString(body).identifier.node.id
    except Exception:  # any invalid message names no node
        return ""
    return node_id


class LogStream:
    """A stream of an authenticated proxy."""

    def __init__(self, proxy: AuthenticatedProxy) -> None:
        self.proxy = proxy
        self.is_revoked = False


class AccessLogs:
    """Reads the records of proxies, within its share of time. `streams` are the open ones, by proxy."""

    def __init__(
        self,
        on_record: OnRecord,
        metrics: Metrics,
        *,
        share: float = _TIME_SHARE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_record = on_record
        self._metrics = metrics
        self._share = share
        self._clock = clock
        self._budget = _MAX_SAVED_SECONDS
        self._looked_at = self._halved_at = clock()
        self._used: dict[str, float] = {}  # seconds of recent work, by proxy
        self._total = 0.0  # total of these
        self._streams: dict[str, set[LogStream]] = {}

    def open(self, proxy: AuthenticatedProxy) -> LogStream:
        """Add a stream of a proxy, until it is closed."""
        stream = LogStream(proxy)
        self._streams.setdefault(proxy.name, set()).add(stream)
        return stream

    def count(self, proxy: AuthenticatedProxy) -> int:
        """Return the number of open streams of a proxy."""
        return len(self._streams.get(proxy.name, ()))

    def close(self, stream: LogStream) -> None:
        """Remove a stream."""
        streams = self._streams.get(stream.proxy.name, set())
        streams.discard(stream)
        if not streams:
            self._streams.pop(stream.proxy.name, None)

    def revoke(self, proxy: str) -> None:
        """Ignore the open streams of a proxy from now on."""
        for stream in self._streams.pop(proxy, ()):
            stream.is_revoked = True

    def read(self, stream: LogStream, body: bytes) -> None:
        """Read one message, if there is time for it. Never raises."""
        began, name = self._clock(), stream.proxy.name
        self._refill(began)
        if not self._may_spend(name):
            self._metrics.received_log("dropped")
            return
        try:
            result = "read"
            for record in _records(stream.proxy, body):
                if not self._may_spend(name, self._clock() - began):
                    result = "dropped"
                    break
                self._on_record(stream.proxy, record)
            self._metrics.received_log(result)
        except Exception:
            _LOG.debug("a message of %s could not be read", name, exc_info=True)
            self._metrics.received_log("unreadable")
        spent = self._clock() - began
        self._budget -= spent
        self._used[name] = self._used.get(name, 0.0) + spent
        self._total += spent

    def _refill(self, now: float) -> None:
        self._budget = min(_MAX_SAVED_SECONDS, self._budget + (now - self._looked_at) * self._share)
        self._looked_at = now
        if now - self._halved_at >= _HALF_LIFE_SECONDS:
            self._halved_at = now
            self._used = {name: used / 2 for name, used in self._used.items() if used > _NEGLIGIBLE_SECONDS}
            self._total = sum(self._used.values())

    def _may_spend(self, proxy: str, spent: float = 0.0) -> bool:
        """Return whether there is time for a proxy that has just used some: less for proxies with much recent work."""
        used, total = self._used.get(proxy, 0.0) + spent, self._total + spent
        part = used / total if total else 0.0
        return self._budget - spent > part * _RESERVED_SECONDS


def _records(proxy: AuthenticatedProxy, body: bytes) -> Iterator[Mapping[str, Any]]:
    message = als_pb2.StreamAccessLogsMessage.FromString(body)
    for entries in (message.http_logs.log_entry, message.tcp_logs.log_entry):
        for entry in entries:
            yield record_of_tags(dict(entry.common_properties.custom_tags), proxy.node)


def record_of_tags(tags: Mapping[str, str], workload: str) -> dict[str, str | None]:
    """Return the record in these tags, in the form of a line of the log. `workload` is that of the sending proxy."""
    values = {name: value if value not in _ABSENT else None for name, value in tags.items()}
    address, denied = values.pop("address", None), values.pop("denied", None)
    record = {**values, "workload": workload, "port": values.get("port") or _ANY_PORT}
    if denied is not None:
        record |= {"eastgate": "denial", "decision": denied, "source": values.get("source") or address}
    return record
