"""Load from one Python thread: requests on many open connections, or connections with one request each.

Each connection has one request in flight at any time. The load checks only the first bytes and the size of an answer.
That costs a small part of Envoy's own work, so that the load measures Envoy. (Batches of requests in one write would
cost still less, but Envoy closes connections on which more than two of its own answers wait.)
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from bench.enforcement.envoys import Envoy

__all__ = ["Load", "Measured", "accepts", "answer", "connected", "connections", "request"]

_MAX_CONNECTIONS = 32
_MIN_CONNECTIONS = 4
_ROUND_SECONDS = 0.02  # about, for one request on each connection
_PENDING_CONNECTIONS = 16
_READ_BYTES = 1 << 16
_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Measured:
    """The requests or connections of one round, and their cost for the process under test."""

    count: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        """Return the count per second."""
        return self.count / self.seconds

    @property
    def cpu_us(self) -> float:
        """Return the CPU microseconds for each."""
        return self.cpu / max(self.count, 1) * 1e6


def request(path: str) -> bytes:
    """Return a small GET request."""
    return f"GET {path} HTTP/1.1\r\nhost: server.shop\r\n\r\n".encode()


class Load:
    """Open connections through sockets. Every request must get the same answer.

    Without `connections`, their number follows from the latency of the first answer.
    """

    def __init__(self, requests: list[tuple[Path, bytes]], status: int, connections: int | None = None) -> None:
        self._stack = contextlib.ExitStack()
        self._begins = f"HTTP/1.1 {status} ".encode()
        path, one = requests[0]
        with connected(path) as line:
            answer(line, one)
            began = time.monotonic()
            got = answer(line, one)
            took = time.monotonic() - began
        assert got.startswith(self._begins), f"wanted {status}, got {got[:60]!r}"
        self._size = len(got)
        count = connections or max(len(requests), _MIN_CONNECTIONS, min(_MAX_CONNECTIONS, int(_ROUND_SECONDS / took)))
        chosen = (requests[number % len(requests)] for number in range(count))
        self._lines = [(self._stack.enter_context(connected(path)), one) for path, one in chosen]
        for line, one in self._lines:
            answer(line, one)  # Envoy does not take a connection for HTTP that is silent at its start

    def close(self) -> None:
        """Close the connections."""
        self._stack.close()

    def run(self, seconds: float, envoy: Envoy) -> Measured:
        """Keep Envoy busy for some seconds. Requests in flight at the start and at the end do not
        count.
        """
        for line, one in self._lines:
            line.sendall(one)
        self._go_round()
        done = 0
        cpu, began = envoy.cpu_seconds(), time.monotonic()
        while time.monotonic() - began < seconds:
            self._go_round()
            done += len(self._lines)
        found = Measured(done, time.monotonic() - began, envoy.cpu_seconds() - cpu)
        for line, _ in self._lines:
            self._receive(line)
        return found

    def _go_round(self) -> None:
        for line, one in self._lines:
            self._receive(line)
            line.sendall(one)

    def _receive(self, line: socket.socket) -> None:
        data = line.recv(_READ_BYTES)
        while 0 < len(data) < self._size:
            data += line.recv(_READ_BYTES)
        assert data.startswith(self._begins), f"got {data[:60]!r}"
        assert len(data) == self._size, f"an answer of {len(data)} bytes instead of {self._size}"


def connected(path: Path) -> socket.socket:
    """Return a connection to a unix socket."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(_TIMEOUT_SECONDS)
    try:
        line.connect(str(path))
    except OSError:
        line.close()
        raise
    return line


def accepts(path: Path) -> bool:
    """Return whether a process listens on the socket. Its file exists a little earlier."""
    try:
        connected(path).close()
    except OSError:
        return False
    return True


def answer(line: socket.socket, one: bytes) -> bytes:
    """Send one request, and return the whole answer."""
    line.sendall(one)
    data = b""
    while True:
        more = line.recv(_READ_BYTES)
        assert more, f"closed after {data!r}"
        data += more
        head, end, body = data.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return data


def connections(path: Path, one: bytes, seconds: float, envoy: Envoy) -> Measured:
    """Open new connections for some seconds, each with one request, and close each after its answer."""
    lines = deque(_asked(path, one) for _ in range(_PENDING_CONNECTIONS))
    done = 0
    try:
        cpu, began = envoy.cpu_seconds(), time.monotonic()
        while time.monotonic() - began < seconds:
            with lines.popleft() as line:
                got = line.recv(_READ_BYTES)
            assert got.startswith(b"HTTP/1.1 200 "), f"got {got[:60]!r}"
            done += 1
            lines.append(_asked(path, one))
        return Measured(done, time.monotonic() - began, envoy.cpu_seconds() - cpu)
    finally:
        for line in lines:
            line.close()


def _asked(path: Path, one: bytes) -> socket.socket:
    line = connected(path)
    line.sendall(one)
    return line
