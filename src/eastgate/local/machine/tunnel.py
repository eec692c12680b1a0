"""The client's end of an HBONE tunnel: a connection inside HTTP/2 CONNECT, as a node proxy makes it for its pods."""

from __future__ import annotations

import asyncio
import ssl

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from eastgate.local.machine.http1 import Headers
from eastgate.local.machine.wire import Wire

_PIECE = 64 * 1024
_OK = "200"


class Tunnel:
    """A tunnel, with the `status` by which the proxy took or refused it. It reads and writes as a `Wire` does.

    A proxy that closes the connection inside may do so before it has taken the tunnel: that is the same to a caller.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=False))
        self._waiting = bytearray()
        self._has_ended = False
        self._stream = 0
        self.status: str | None = None
        self._was_reset = False

    @classmethod
    async def open(
        cls,
        address: tuple[str, int],
        source: str | None,
        context: ssl.SSLContext,
        authority: str,
        headers: Headers = (),
    ) -> Tunnel:
        """Connect to a proxy, and ask for a tunnel to an address."""
        context.set_alpn_protocols(["h2"])
        tunnel = cls(await Wire.open(address, source, context, address[0]))
        try:
            await tunnel._ask(authority, headers)
        except BaseException:
            await tunnel.close(reset=True)
            raise
        return tunnel

    @property
    def source(self) -> tuple[str, int]:
        """Return the address of this end."""
        return self._wire.source

    @property
    def closed(self) -> asyncio.Event:
        return self._wire.closed

    @property
    def closed_at(self) -> float | None:
        return self._wire.closed_at

    async def read(self, most: int) -> bytes:
        """Return the next bytes; empty when the peer closed in order."""
        while not self._waiting and not self._has_ended:
            await self._hear()
        if not self._waiting and self._was_reset:
            raise ConnectionResetError("the tunnel was reset")
        taken = bytes(self._waiting[:most])
        del self._waiting[:most]
        return taken

    async def write(self, data: bytes) -> None:
        """Send. Errors are not reported here: reading tells why."""
        view = memoryview(data)
        while view and not self._has_ended:
            window = min(self._http.local_flow_control_window(self._stream), self._http.max_outbound_frame_size)
            if window <= 0:
                await self._hear()
                continue
            self._http.send_data(self._stream, bytes(view[:window]))
            view = view[window:]
            await self._flush()

    async def close(self, *, reset: bool = False) -> None:
        """Close at once, with the connection that the tunnel is in."""
        await self._wire.close(reset=reset)

    async def _ask(self, authority: str, headers: Headers) -> None:
        self._http.initiate_connection()
        self._stream = self._http.get_next_available_stream_id()
        self._http.send_headers(self._stream, [(":method", "CONNECT"), (":authority", authority), *headers])
        await self._flush()
        while self.status is None and not self._has_ended:
            await self._hear()
        self._has_ended |= self.status != _OK

    async def _flush(self) -> None:
        if data := self._http.data_to_send():
            await self._wire.write(data)

    async def _hear(self) -> None:
        data = await self._wire.read(_PIECE)
        if not data:
            self._has_ended = True
            return
        try:
            events = self._http.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            raise ConnectionResetError(f"this is no HTTP/2: {error}") from None
        for event in events:
            self._take(event)
        await self._flush()

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.ResponseReceived():
                self.status = dict(event.headers or ())[b":status"].decode("latin-1")
            case h2.events.DataReceived():
                if self.status == _OK:  # else it is an answer of the proxy
                    self._waiting += event.data or b""
                self._http.acknowledge_received_data(event.flow_controlled_length or 0, self._stream)
            case h2.events.StreamReset() | h2.events.ConnectionTerminated():
                self._has_ended = True
                self._was_reset = event.error_code != h2.errors.ErrorCodes.NO_ERROR
            case h2.events.StreamEnded():
                self._has_ended = True
