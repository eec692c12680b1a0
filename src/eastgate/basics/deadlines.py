"""Connections of httpcore2 with a deadline for the whole connection.

The library limits each wait by itself: a server that sends a byte now and then could hold its client for ever.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore2


class DeadlineBackend(httpcore2.NetworkBackend):
    """Connects until a deadline of the monotonic clock."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline bounds everything
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Return a connection with the same deadline."""
        left = _left(self._deadline, httpcore2.ConnectTimeout)
        stream = httpcore2.SyncBackend().connect_tcp(host, port, left, local_address, socket_options)
        return _DeadlineStream(stream, self._deadline)


class _DeadlineStream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, _left(self._deadline, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._stream.write(buffer, _left(self._deadline, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        left = _left(self._deadline, httpcore2.ConnectTimeout)
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float, too_late: type[httpcore2.TimeoutException]) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise too_late(TimeoutError("timed out"))
    return left
