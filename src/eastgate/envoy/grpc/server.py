"""A gRPC server for checks, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.envoy.grpc.calls import Method
from eastgate.envoy.grpc.connection import GrpcConnection

_POLL_SECONDS: Final = 1.0  # seconds
_ANNOUNCE_SECONDS: Final = 0.1  # for calls that peers sent before they learned of the end


@dataclass(frozen=True, slots=True)
class GrpcLimits:
    """The limits for one client, and for all of them.

    - `head` and `message` are bytes, `streams` the open calls of one connection.
    - A call has `seconds` to arrive, and its answer has `seconds` to be accepted.
    - A peer that is silent for `silence` seconds is pinged.
    - `held` are the bytes of all open calls.
    - A peer may send `idle_frames` without progress of a call in `seconds`, and `idle_frames_of_call` more for each
      call.
    """

    head: int = 64 * 1024
    message: int = 1024 * 1024
    streams: int = 256
    connections: int = 1024
    held: int = 256 * 1024 * 1024
    seconds: float = 10.0
    silence: float = 120.0
    idle_frames: int = 1000
    idle_frames_of_call: int = 8


class GrpcServer:
    """The connections of some methods, by their paths."""

    def __init__(self, methods: Mapping[str, Method], limits: GrpcLimits | None = None) -> None:
        self.methods = {path.encode("ascii"): method for path, method in methods.items()}
        self.limits = limits or GrpcLimits()
        self.draining = False
        self._connections: set[GrpcConnection] = set()
        self._held = 0
        self._timer: asyncio.TimerHandle | None = None

    def protocol(self) -> GrpcConnection:
        """Return the protocol of a new connection."""
        return GrpcConnection(self)

    async def drain(self, grace: float) -> None:
        """Announce the end, answer open calls, and close, after at most this number of seconds."""
        self.draining = True
        loop = asyncio.get_running_loop()
        end = loop.time() + grace
        for connection in tuple(self._connections):
            connection.announce_end()
        if self._connections:
            await asyncio.sleep(min(grace, _ANNOUNCE_SECONDS))
        for connection in tuple(self._connections):
            connection.end_when_idle()
        while self._connections and loop.time() < end:
            await asyncio.sleep(0.01)
        for connection in tuple(self._connections):
            connection.abort()

    # Interface for connections

    def add(self, connection: GrpcConnection) -> bool:
        """Add a new connection, if there is room. If necessary, close the one without calls for longest."""
        if self.draining:
            return False
        if len(self._connections) >= self.limits.connections:
            idle = [each for each in self._connections if each.is_idle]
            if not idle:
                return False
            longest = min(idle, key=lambda each: (each.calls.called_at, each.began))
            self.remove(longest)
            longest.evict()
        self._connections.add(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_POLL_SECONDS, self._check_connections)
        return True

    def remove(self, connection: GrpcConnection) -> None:
        """Remove a closed connection."""
        self._connections.discard(connection)

    def hold(self, size: int, arriving: int) -> bool:
        """Reserve room for a number of bytes, and return whether there is any; `arriving` bytes came on their
        connection.

        They count until `release`. If there is no room, calls of connections with more arriving bytes are refused, so
        that no connection uses all the room.
        """
        while self._held + size > self.limits.held:
            largest = max((each.calls for each in self._connections), key=lambda calls: calls.arriving, default=None)
            if largest is None or largest.arriving <= arriving + size:
                return False
            largest.refuse_largest()
        self._held += size
        return True

    def release(self, size: int) -> None:
        """Release a number of reserved bytes."""
        self._held -= size

    def _check_connections(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_POLL_SECONDS, self._check_connections) if self._connections else None
        for connection in tuple(self._connections):
            connection.check_timeouts(loop.time())
