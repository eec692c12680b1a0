"""Carries gRPC over TLS with a context of Python's `ssl`.

gRPC's own TLS takes keys from files and compares host names; the identities of a mesh have neither. So gRPC speaks in
clear to a unix socket that only this user can open, and what comes there goes on by TLS.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from eastgate.control.authorizer.external_address import ServiceAddress, connect

_PIECE: Final = 64 * 1024
_PAUSE: Final = 0.1  # seconds after a connection that could not be accepted


class TlsTunnel:
    """A unix socket that leads to an address. `seconds` bound each connection's beginning."""

    def __init__(self, address: ServiceAddress, seconds: float) -> None:
        self._address = address
        self._seconds = seconds
        self._folder = tempfile.TemporaryDirectory(prefix="eastgate-")  # nobody else may look into it
        path = Path(self._folder.name) / "tunnel"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self.target = f"unix:{path}"
        self._closed = threading.Event()
        threading.Thread(target=self._accept, name="tunnel", daemon=True).start()

    def close(self) -> None:
        """Accept no more. What is open ends with its connections."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                near, _ = self._listener.accept()
            except OSError:  # it is closed, or there are too many open files, which passes
                self._closed.wait(_PAUSE)
                continue
            try:
                threading.Thread(target=self._carry, args=(near,), name="tunnel", daemon=True).start()
            except RuntimeError:  # too many threads
                near.close()

    def _carry(self, near: socket.socket) -> None:
        try:
            far = connect(self._address, time.monotonic() + self._seconds)
        except OSError:
            near.close()
            return
        with near, far, contextlib.suppress(OSError):
            near.setblocking(False)
            far.setblocking(False)
            while _carried(near, far, select.select([near, far], [], [])[0]):
                pass


def _carried(near: socket.socket, far: socket.socket, readable: list[socket.socket]) -> bool:
    """Carry what there is to read. Return False where an end has closed. A TLS connection is for one thread only."""
    for source, sink in ((near, far), (far, near)):
        while source in readable:
            try:
                piece = source.recv(_PIECE)
            except (BlockingIOError, ssl.SSLWantReadError):
                break
            if not piece:
                return False
            _send(sink, piece)
    return True


def _send(sink: socket.socket, data: bytes) -> None:
    while data:
        try:
            data = data[sink.send(data) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            select.select([], [sink], [])
