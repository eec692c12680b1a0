"""Addresses of external authorizers, and connections to them."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import field

from eastgate.basics.records import dataclass


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a service is reached, by TLS where there is a context for it.

    `verify` is called with each new TLS connection, and raises where its peer is not the right one. For a service that
    is asked by gRPC the context should offer `h2` (ALPN).
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    verify: Callable[[ssl.SSLSocket], object] | None = field(default=None, repr=False)


def connect(address: ServiceAddress, deadline: float) -> socket.socket:
    """Return a connection. Raises OSError, also where it takes longer than the deadline (of the monotonic clock)."""
    connection = socket.create_connection((address.host, address.port), timeout=seconds_until(deadline))
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.tls is not None:
            connection.settimeout(seconds_until(deadline))
            connection = secured = address.tls.wrap_socket(connection, server_hostname=address.server_name)
            if address.verify is not None:
                address.verify(secured)
    except OSError:
        connection.close()
        raise
    except Exception as error:  # as `verify` raises it
        connection.close()
        raise ssl.SSLError("the service is not the right one") from error
    return connection


def seconds_until(deadline: float) -> float:
    """Return the seconds that are left. Raises TimeoutError where there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
