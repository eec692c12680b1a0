"""One call on a connection."""

from __future__ import annotations

import asyncio

from eastgate.envoy.grpc.calls import Method

__all__ = ["GrpcStream"]


class GrpcStream:
    """A call that is open: its request arrives, it is being answered, or its answer waits to be sent."""

    __slots__ = ("answering", "began", "ends", "id", "is_whole", "method", "received", "started", "unsent", "window")

    def __init__(self, number: int, method: Method, window: int, now: float) -> None:
        self.id = number
        self.method = method
        self.window = window  # bytes that the peer takes
        self.began = now
        self.received: bytes | bytearray = b""
        self.is_whole = False
        self.answering: asyncio.Task[None] | None = None
        self.started = False  # the headers of the response are sent
        self.unsent = b""
        self.ends = False  # no message comes after `unsent`
