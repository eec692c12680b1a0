"""One call on a connection, and those that ended too early."""

from __future__ import annotations

import asyncio
from typing import Final

from eastgate.envoy.grpc.calls import GrpcCall

_MOST_CUT_OFF: Final = 1024


class GrpcStream:
    """A call that is open: its request arrives, it is being answered, or its answer waits to be sent."""

    __slots__ = ("answering", "began", "call", "ends", "id", "is_whole", "received", "started", "unsent", "window")

    def __init__(self, number: int, call: GrpcCall, window: int, now: float) -> None:
        self.id = number
        self.call = call
        self.window = window  # bytes that the peer takes
        self.began = now
        self.received: bytes | bytearray = b""
        self.is_whole = False
        self.answering: asyncio.Task[None] | None = None
        self.started = False  # the headers of the response are sent
        self.unsent = b""
        self.ends = False  # no message comes after `unsent`


class CutOffStreams:
    """Streams that we ended before their requests did: the peer goes on sending until it knows.

    The numbers of the last ones are kept. All earlier numbers, up to the highest that was dropped, count as cut off.
    """

    def __init__(self) -> None:
        self._last: dict[int, None] = {}
        self._highest_before = 0

    def add(self, number: int) -> None:
        """Remember a stream."""
        self._last[number] = None
        if len(self._last) > _MOST_CUT_OFF:
            oldest = next(iter(self._last))
            del self._last[oldest]
            self._highest_before = max(self._highest_before, oldest)

    def __contains__(self, number: int) -> bool:
        return number <= self._highest_before or number in self._last

    def __len__(self) -> int:
        return len(self._last)
