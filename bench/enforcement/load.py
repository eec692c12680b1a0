"""Load, from one thread of Python: requests in batches on open connections, or connections with one request each.

A batch is written at once (HTTP/1.1 pipelining), and of its answers only the bytes are counted: all are of one size.
What each request costs here is then a small part of what it costs an Envoy, so that Envoy is what is measured.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.enforcement.envoys import Envoy

__all__ = ["Load", "Measured", "answer", "connections", "request"]

_CONNECTIONS = 4
_BATCH = 50
_BATCH_SECONDS = 0.02
_AT_ONCE = 16
_CHUNK = 1 << 18
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What was done in a while, and what it cost the Envoy under test."""

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
        return self.cpu / self.count * 1e6


def request(path: str) -> bytes:
    """A small request."""
    return f"GET {path} HTTP/1.1\r\nhost: server.shop\r\n\r\n".encode()


class Load:
    """Connections through some sockets, on which the same answer is wanted to every request."""

    def __init__(self, requests: list[tuple[Path, bytes]], status: int) -> None:
        self._lines: list[tuple[socket.socket, bytes]] = []
        self._begins = f"HTTP/1.1 {status} ".encode()
        for number in range(max(_CONNECTIONS, len(requests))):
            path, one = requests[number % len(requests)]
            self._lines.append((_connected(path), one))
        sizes = {len(answer(line, one)) for line, one in self._lines}
        began = time.monotonic()
        got = answer(*self._lines[0])
        self._batch = max(1, min(_BATCH, int(_BATCH_SECONDS / (time.monotonic() - began))))
        assert got.startswith(self._begins), f"wanted {status}, got {got[:60]!r}"
        assert len(sizes) == 1, f"answers of several sizes: {sizes}"
        self._size = len(got)

    def close(self) -> None:
        """No more."""
        for line, _ in self._lines:
            line.close()

    def run(self, seconds: float, envoy: Envoy) -> Measured:
        """Keep Envoy busy for that long. Batches that are on their way when it begins are not counted."""
        batches = [one * self._batch for _, one in self._lines]
        for (line, _), batch in zip(self._lines, batches, strict=True):
            line.sendall(batch)
        done = 0
        cpu, began = envoy.cpu_seconds(), time.monotonic()
        while time.monotonic() - began < seconds:
            for (line, _), batch in zip(self._lines, batches, strict=True):
                self._receive(line)
                line.sendall(batch)
                done += self._batch
        found = Measured(done, time.monotonic() - began, envoy.cpu_seconds() - cpu)
        for line, _ in self._lines:
            self._receive(line)
        return found

    def _receive(self, line: socket.socket) -> None:
        left = self._size * self._batch
        good = 0
        rest = b""
        while left > 0:
            data = line.recv(min(_CHUNK, left))
            assert data, "closed"
            left -= len(data)
            good += (rest + data).count(self._begins)
            rest = data[-len(self._begins) + 1 :]
        assert good == self._batch, f"{self._batch - good} of {self._batch} answers were others"


def _connected(path: Path) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(_PATIENCE)
    line.connect(str(path))
    return line


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
    open_lines: deque[socket.socket] = deque()
    done = 0
    with contextlib.ExitStack() as stack:
        for _ in range(_AT_ONCE):
            open_lines.append(_asked(path, one))
        stack.callback(lambda: [line.close() for line in open_lines])
        cpu, began = envoy.cpu_seconds(), time.monotonic()
        while time.monotonic() - began < seconds:
            line = open_lines.popleft()
            got = line.recv(_CHUNK)
            line.close()
            assert got.startswith(b"HTTP/1.1 200 "), f"got {got[:60]!r}"
            done += 1
            open_lines.append(_asked(path, one))
        return Measured(done, time.monotonic() - began, envoy.cpu_seconds() - cpu)


def _asked(path: Path, one: bytes) -> socket.socket:
    line = _connected(path)
    line.sendall(one)
    return line


Turn = Callable[[], Measured]
