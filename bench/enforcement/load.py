"""Load, from one thread of Python: requests on many open connections, or connections with one request each.

Each connection has one request on its way at any time, and of the answers only the first bytes and the size are looked
at. What that costs here is a small part of what it costs an Envoy, so that Envoy is what is measured. (A batch of
requests in one write would cost still less, but Envoy closes connections on which more than two answers of its own
would wait.)
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

_CONNECTIONS = 32
_FEWEST = 4
_WAITING = 0.02  # seconds for which a round of all connections may last, about
_AT_ONCE = 16
_CHUNK = 1 << 16
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What was done in a while, and what it cost the process under test."""

    count: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        """How many there were in a second."""
        return self.count / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU microseconds for each."""
        return self.cpu / max(self.count, 1) * 1e6


def request(path: str) -> bytes:
    """A small request."""
    return f"GET {path} HTTP/1.1\r\nhost: server.shop\r\n\r\n".encode()


class Load:
    """Connections through some sockets, on which the same answer is wanted to every request.

    Without `connections`, their number follows from how long the first answer takes.
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
        count = connections or max(len(requests), _FEWEST, min(_CONNECTIONS, int(_WAITING / took)))
        chosen = (requests[number % len(requests)] for number in range(count))
        self._lines = [(self._stack.enter_context(connected(path)), one) for path, one in chosen]
        for line, one in self._lines:
            answer(line, one)  # a connection that is silent at its beginning is not taken for HTTP

    def close(self) -> None:
        """No more."""
        self._stack.close()

    def run(self, seconds: float, envoy: Envoy) -> Measured:
        """Keep Envoy busy for that long. Requests that are on their way when it begins do not count, nor those that
        are at its end.
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
        data = line.recv(_CHUNK)
        while 0 < len(data) < self._size:
            data += line.recv(_CHUNK)
        assert data.startswith(self._begins), f"got {data[:60]!r}"
        assert len(data) == self._size, f"an answer of {len(data)} bytes instead of {self._size}"


def connected(path: Path) -> socket.socket:
    """Return a connection to a socket."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(_PATIENCE)
    try:
        line.connect(str(path))
    except OSError:
        line.close()
        raise
    return line


def accepts(path: Path) -> bool:
    """Whether somebody listens there: the file is there a little earlier."""
    try:
        connected(path).close()
    except OSError:
        return False
    return True


def answer(line: socket.socket, one: bytes) -> bytes:
    """The whole answer to one request."""
    line.sendall(one)
    data = b""
    while True:
        more = line.recv(_CHUNK)
        assert more, f"closed after {data!r}"
        data += more
        head, end, body = data.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return data


def connections(path: Path, one: bytes, seconds: float, envoy: Envoy) -> Measured:
    """New connections for that long, each with one request, and each closed when it is answered."""
    lines = deque(_asked(path, one) for _ in range(_AT_ONCE))
    done = 0
    try:
        cpu, began = envoy.cpu_seconds(), time.monotonic()
        while time.monotonic() - began < seconds:
            with lines.popleft() as line:
                got = line.recv(_CHUNK)
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
