"""Receives the access logs of proxies (Envoy's ALS), beside their configuration and with the same authentication.

A proxy is believed only about itself. Reading its records takes at most a share of the time of the event loop: beyond
that they are dropped, and counted. Nothing that a proxy sends delays what others wait for, and nothing waits for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from envoy.service.accesslog.v3 import als_pb2

from eastgate.envoy.server.authentication import AuthenticatedProxy
from eastgate.envoy.server.metrics import Metrics

__all__ = ["LOG_METHOD", "LOG_SERVICE", "AccessLogs", "LogStream", "OnRecord", "node_of_log", "record_of_tags"]

LOG_SERVICE: Final = "envoy.service.accesslog.v3.AccessLogService"
LOG_METHOD: Final = "StreamAccessLogs"
OnRecord: TypeAlias = Callable[[AuthenticatedProxy, Mapping[str, Any]], None]
"""Is called with the record of each decision, in the form of the lines that proxies write."""

_LOG = logging.getLogger(__name__)
_ABSENT: Final = ("", "-")  # how Envoy writes what is not there
_ANY_PORT: Final = "0"
_SHARE: Final = 0.1  # of the time of the loop
_SAVED: Final = 0.5  # seconds of work that may be done at once after a quiet time


def node_of_log(body: bytes) -> str:
    """Return the node id in the first message of a stream; empty where it cannot be read."""
    try:
        node_id: str = als_pb2.StreamAccessLogsMessage.FromString(body).identifier.node.id
    except Exception:  # whatever it is, it names nobody
        return ""
    return node_id


class LogStream:
    """A stream of an authenticated proxy."""

    def __init__(self, proxy: AuthenticatedProxy) -> None:
        self.proxy = proxy
        self.is_revoked = False


class AccessLogs:
    """Reads what proxies send, within its share of time. `streams` are those that are open, by proxy."""

    def __init__(
        self,
        on_record: OnRecord,
        metrics: Metrics,
        *,
        share: float = _SHARE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_record = on_record
        self._metrics = metrics
        self._share = share
        self._clock = clock
        self._budget = _SAVED
        self._looked_at = clock()
        self._streams: dict[str, set[LogStream]] = {}

    def open(self, proxy: AuthenticatedProxy) -> LogStream:
        """Note a stream of a proxy, until it is closed."""
        stream = LogStream(proxy)
        self._streams.setdefault(proxy.name, set()).add(stream)
        return stream

    def close(self, stream: LogStream) -> None:
        """Forget a stream."""
        streams = self._streams.get(stream.proxy.name, set())
        streams.discard(stream)
        if not streams:
            self._streams.pop(stream.proxy.name, None)

    def revoke(self, proxy: str) -> None:
        """Hear no more of the open streams of a proxy."""
        for stream in self._streams.pop(proxy, ()):
            stream.is_revoked = True

    def read(self, stream: LogStream, body: bytes) -> None:
        """Read one message, if there is time for it. Never raises."""
        began = self._clock()
        self._budget = min(_SAVED, self._budget + (began - self._looked_at) * self._share)
        self._looked_at = began
        if self._budget <= 0:
            self._metrics.received_log("dropped")
            return
        try:
            for record in _records(stream.proxy, body):
                self._on_record(stream.proxy, record)
            self._metrics.received_log("read")
        except Exception:
            _LOG.debug("a message of %s could not be read", stream.proxy.name, exc_info=True)
            self._metrics.received_log("unreadable")
        self._budget -= self._clock() - began


def _records(proxy: AuthenticatedProxy, body: bytes) -> Iterator[Mapping[str, Any]]:
    message = als_pb2.StreamAccessLogsMessage.FromString(body)
    for entries in (message.http_logs.log_entry, message.tcp_logs.log_entry):
        for entry in entries:
            yield record_of_tags(dict(entry.common_properties.custom_tags), proxy.node)


def record_of_tags(tags: Mapping[str, str], workload: str) -> dict[str, str | None]:
    """Return the record that was sent as tags, in the form of a line of the log. `workload` is whose proxy sent it."""
    values = {name: value if value not in _ABSENT else None for name, value in tags.items()}
    address, denied = values.pop("address", None), values.pop("denied", None)
    record = {**values, "workload": workload, "port": values.get("port") or _ANY_PORT}
    if denied is not None:
        record |= {"eastgate": "denial", "decision": denied, "source": values.get("source") or address}
    return record
