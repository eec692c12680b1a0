"""Load from one Python thread that measures the latency of each answer. A connection has one request at a time."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from bench.enforcement.load import Measured, answer, connected

__all__ = ["Timed", "TimedLoad", "ask"]

_READ_BYTES = 1 << 16
_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Timed(Measured):
    """One round: the count of answers, their cost, and the median and p99 of their latency."""

    p50: float
    p99: float


def ask(path: Path, request: bytes) -> int:
    """Return the status of the answer to one request."""
    with connected(path) as line:
        return int(answer(line, request).split(b" ", 2)[1])


class TimedLoad:
    """Connections that are kept busy with requests. Every answer must have the given status."""

    def __init__(self, path: Path, requests: Iterator[bytes], status: int, connections: int) -> None:
        self._requests = requests
        self._begins = f"HTTP/1.1 {status} ".encode()
        self._stack = contextlib.ExitStack()
        self._lines = {}
        self._poll = self._stack.enter_context(select.epoll())
        for _ in range(connections):
            line = self._stack.enter_context(connected(path))
            self._lines[line.fileno()] = line
            self._poll.register(line.fileno(), select.EPOLLIN)

    def close(self) -> None:
        """Close the connections."""
        self._stack.close()

    def run(self, seconds: float) -> tuple[int, float, float, float]:
        """Send requests for some seconds. Return the count of answers, the time, and the median and p99 latency."""
        clock, lines, began_at, took = time.perf_counter, self._lines, {}, []
        requests, begins = self._requests, self._begins
        start = clock()
        for number, line in lines.items():
            began_at[number] = clock()
            line.sendall(next(requests))
        end = start + seconds
        while True:
            ready = self._poll.poll(_TIMEOUT_SECONDS)
            assert ready, f"no answer in {_TIMEOUT_SECONDS} s"
            now = clock()
            for number, _ in ready:
                line = lines[number]
                data = line.recv(_READ_BYTES)
                assert data.startswith(begins), f"got {data[:60]!r}"
                took.append(now - began_at[number])
                if now < end:
                    began_at[number] = clock()
                    line.sendall(next(requests))
                else:
                    del began_at[number]
            if not began_at:
                break
        cuts = quantiles(took, n=100)
        return len(took), clock() - start, cuts[49], cuts[98]
