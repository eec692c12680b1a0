"""Addresses that an authorizer listens on, and the sockets for them."""

from __future__ import annotations

import os
import socket
import stat
from typing import Final

from eastgate.basics.records import dataclass

_UNIX: Final = "unix:"
_BACKLOG: Final = 1024
SOCKET_MODE: Final = 0o660  # whoever may not write to a unix socket cannot connect


class BadAddress(ValueError):  # noqa: N818 - says what it is
    """Nothing can listen there."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """`HOST:PORT`, or `unix:PATH`."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def of(cls, text: str) -> ListenAddress:
        """Read an address. Raises BadAddress."""
        if text.startswith(_UNIX):
            path = text.removeprefix(_UNIX)
            if not path:
                raise BadAddress(f"`{text}` has no path")
            return cls(path=os.path.abspath(path))
        host, _, port = text.rpartition(":")
        if not port.isascii() or not port.isdigit() or int(port) > 65535 or any(c in host for c in "/ @"):
            raise BadAddress(f"`{text}` is neither HOST:PORT nor unix:PATH")
        return cls({"": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host.strip("[]")), int(port))

    def numbered(self, number: int) -> ListenAddress:
        """Return the address of one of several processes: unix sockets end in its number, ports are shared."""
        return ListenAddress(path=f"{self.path}.{number}") if self.path else self

    @property
    def grpc(self) -> str:
        """Return the address as gRPC writes it."""
        return f"{_UNIX}{self.path}" if self.path else f"[{self.host}]:{self.port}" if ":" in self.host else str(self)

    def __str__(self) -> str:
        return f"{_UNIX}{self.path}" if self.path else f"{self.host}:{self.port}"


def listen(address: ListenAddress, *, shared: bool) -> socket.socket:
    """Return a socket that listens. `shared`: other processes listen on the same port. Raises BadAddress."""
    try:
        if address.path:
            remove_stale(address.path)
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening.bind(address.path)
            os.chmod(address.path, SOCKET_MODE)
        else:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            # Of connections that do not say that they are TCP, asyncio lets small answers wait for one another.
            listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.bind((address.host, address.port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        raise BadAddress(f"nothing can listen on {address}: {error.strerror or error}") from None
    return listening


def remove_stale(path: str) -> None:
    """Remove a unix socket that nobody listens on any more. Raises OSError where somebody does, or it is no socket."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(17, "there is something else")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            os.unlink(path)
            return
    raise FileExistsError(17, "somebody listens there")
