"""A connection, plain or with TLS, that reads everything that the peer sent, even after sending has failed.

A proxy that refuses a certificate or a request sends a reason and closes. The caller may still be sending then. The
streams of asyncio end at the first byte that cannot be sent, so that the refusal would look like a mere reset. Here, a
failure to send ends nothing, and reading shows the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import time

_RESET = struct.pack("ii", 1, 0)
_CHUNK_BYTES = 64 * 1024
_MAX_BUFFERED_BYTES = 1024 * 1024
_LAST_READ_SECONDS = 1.0


class HandshakeClosed(ConnectionError):  # noqa: N818 - the name is an event
    """The peer closed before the end of the TLS handshake, without a reason."""


class Wire:
    """One open connection. `closed` is set, and `closed_at` known, as soon as the peer has closed."""

    def __init__(self, connected: socket.socket, tls: _Tls | None) -> None:
        self.closed = asyncio.Event()
        self.closed_at: float | None = None
        self._socket = connected
        self._tls = tls
        self._waiting = bytearray()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._sending = asyncio.Lock()
        self._error: OSError | None = None
        self._pumping: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, address: tuple[str, int], source: str | None, context: ssl.SSLContext | None, name: str | None
    ) -> Wire:
        """Connect, from this source address if one is given, and do the TLS handshake."""
        made = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.setblocking(False)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if source is not None:
                made.bind((source, 0))
            await asyncio.get_running_loop().sock_connect(made, address)
            tls = None if context is None else _Tls(context, name)
            wire = cls(made, tls)
            if tls is not None:
                await wire._shake_hands(tls)
        except BaseException:
            made.close()
            raise
        wire._pumping = asyncio.create_task(wire._pump(), name=f"reading from {address[0]}:{address[1]}")
        return wire

    @property
    def source(self) -> tuple[str, int]:
        """Return the address of this end."""
        name = self._socket.getsockname()
        return name[0], name[1]

    async def read(self, most: int) -> bytes:
        """Return the next bytes; empty after an orderly end. Other ends are raised, after the last byte."""
        await self._arrived.wait()
        taken = bytes(self._waiting[:most])
        del self._waiting[:most]
        if not taken and self._error is not None:
            raise self._error
        if not self._waiting and not self.closed.is_set():
            self._arrived.clear()
        if len(self._waiting) < _MAX_BUFFERED_BYTES:
            self._room.set()
        return taken

    async def write(self, data: bytes) -> None:
        """Send. Errors are not reported here: reading shows the reason."""
        try:
            if self._tls is not None:
                self._tls.object.write(data)
                await self._flush(self._tls)
            else:
                await asyncio.get_running_loop().sock_sendall(self._socket, data)
        except OSError as error:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.closed.wait(), _LAST_READ_SECONDS)
            self._end(error)

    async def close(self, *, reset: bool = False) -> None:
        """Close at once; `reset`: the peer drops the connection, even if its own peer has not closed."""
        try:
            if reset:
                with contextlib.suppress(OSError):
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            if self._pumping is not None:
                self._pumping.cancel()
                await asyncio.wait([self._pumping])
        finally:
            self._socket.close()

    async def _shake_hands(self, tls: _Tls) -> None:
        while True:
            try:
                tls.object.do_handshake()
            except ssl.SSLWantReadError:
                await self._read_handshake(tls)
                continue
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    await self._flush(tls)  # the peer may send the reason
                raise
            await self._flush(tls)
            return

    async def _read_handshake(self, tls: _Tls) -> None:
        try:
            await self._flush(tls)
            data = await asyncio.get_running_loop().sock_recv(self._socket, _CHUNK_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            raise HandshakeClosed("closed during the handshake")
        tls.incoming.write(data)

    async def _flush(self, tls: _Tls) -> None:
        async with self._sending:
            while data := tls.outgoing.read():
                await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while not self.closed.is_set():
                await self._room.wait()
                data = await loop.sock_recv(self._socket, _CHUNK_BYTES)
                ended = not data
                if self._tls is not None:
                    data, ended = self._tls.decrypt(data)
                self._take(data)
                if ended:
                    self._end(None)
        except OSError as error:
            self._end(error)

    def _take(self, data: bytes) -> None:
        self._waiting += data
        if self._waiting:
            self._arrived.set()
        if len(self._waiting) >= _MAX_BUFFERED_BYTES:
            self._room.clear()

    def _end(self, error: OSError | None) -> None:
        if self.closed.is_set():
            return
        self._error = error
        self.closed_at = time.monotonic()
        self.closed.set()
        self._arrived.set()


class _Tls:
    """The TLS state of one connection, apart from any socket."""

    def __init__(self, context: ssl.SSLContext, name: str | None) -> None:
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.object = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)

    def decrypt(self, data: bytes) -> tuple[bytes, bool]:
        """Return the decrypted bytes, and whether they were the last. A refusal of the peer is raised."""
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()
        plain = bytearray()
        while True:
            try:
                piece = self.object.read(_CHUNK_BYTES)
            except ssl.SSLWantReadError:
                return bytes(plain), False
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                return bytes(plain), True
            if not piece:
                return bytes(plain), True
            plain += piece
