"""The limits of the control plane for its clients: sizes, and waiting times."""

from __future__ import annotations

from eastgate.basics.records import dataclass

_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes are in bytes, times in seconds."""

    streams: int = 4096
    log_streams: int = 16384
    log_streams_of_proxy: int = 256  # Envoy has two for each of its threads
    first_message: float = 5.0  # for a stream to name its node
    message: int = 4 * _MEGABYTE  # received
    response: int = 3 * _MEGABYTE  # sent; a single resource may be larger
    subscriptions: int = 20_000  # names per stream, of all types
    keepalive: float = 20.0  # between two pings of a silent proxy
    keepalive_timeout: float = 10.0  # for the answer to a ping
