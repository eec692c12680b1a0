"""One real TLS connection over loopback, and the result at each end."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from eastgate.control.identity import PeerError, TrustBundles, verify_connection
from tests.patience import PATIENCE

Side = tuple[ssl.SSLContext, TrustBundles, str | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The identity that each end proved to the other, or the error of the handshake."""

    server_saw: str | Exception
    client_saw: str | Exception


def connect(server: Side, client: Side) -> Outcome:
    """Connect, and let each end verify the other before it sends data."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        listener.settimeout(PATIENCE)
        served = pool.submit(_attempt, lambda: _serve(listener, server))
        client_saw = _attempt(lambda: _call(listener.getsockname(), client))
        return Outcome(served.result(timeout=PATIENCE), client_saw)


def _attempt(step: Callable[[], str]) -> str | Exception:
    try:
        return step()
    except (OSError, PeerError) as error:
        return error


def _serve(listener: socket.socket, side: Side) -> str:
    context, bundles, expected = side
    accepted, _ = listener.accept()
    with accepted:
        accepted.settimeout(PATIENCE)
        with context.wrap_socket(accepted, server_side=True) as connection:
            seen = verify_connection(connection, bundles, expected)
            connection.sendall(b"!")
            connection.recv(1)
            return seen


def _call(address: tuple[str, int], side: Side) -> str:
    context, bundles, expected = side
    with (
        socket.create_connection(address, timeout=PATIENCE) as raw,
        context.wrap_socket(raw, server_hostname=None) as connection,
    ):
        seen = verify_connection(connection, bundles, expected)
        # In TLS 1.3 a client must read to learn that the server rejected its certificate.
        if not connection.recv(1):
            raise ConnectionError("the server hung up")
        connection.sendall(b"!")
        return seen
