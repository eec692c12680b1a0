"""A process that sees when a change is enforced: `python -m bench.enforcement.watcher`. It speaks lines of JSON.

The first line of its input has a certificate and addresses. Each further line is a status to wait for. The process
prints the statuses that it sees before, then sends requests without a pause, and prints when each address had the new
status. Status 0 means a closed connection. Times are of the monotonic clock, which all processes share.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]

_TIMEOUT_SECONDS = 60.0
_READ_BYTES = 1 << 16


class _Watched:
    """One address, with requests on one open connection, or on a new one each time (`anew`)."""

    def __init__(self, at: Sequence[Any], context: ssl.SSLContext, asked: bytes, *, anew: bool) -> None:
        self._at = (str(at[0]), int(at[1]))
        self._context = context
        self._asked = asked
        self._anew = anew
        self._line: ssl.SSLSocket | None = None
        self.closed: float | None = None

    def status(self) -> int:
        """Send a request, and return its status."""
        if self._anew:
            with contextlib.suppress(OSError), self._connected() as line:
                return _ask(line, self._asked)
            return 0
        if self._line is None:
            self._line = self._connected()
        return _ask(self._line, self._asked)

    def hold(self) -> threading.Thread:
        """Keep a connection open in a thread that notes when it is closed."""
        line = self._connected()
        assert _ask(line, self._asked) == 200

        def wait() -> None:
            with contextlib.suppress(OSError), line:
                line.recv(_READ_BYTES)
            self.closed = time.monotonic()

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    def _connected(self) -> ssl.SSLSocket:
        plain = socket.create_connection(self._at, _TIMEOUT_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._context.wrap_socket(plain)


def _ask(line: ssl.SSLSocket, asked: bytes) -> int:
    """Send a request, and return the status of the answer, or 0 if the connection closes."""
    line.sendall(asked)
    data = b""
    while True:
        more = line.recv(_READ_BYTES)
        if not more:
            return 0
        data += more
        head, end, body = data.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0):
            return int(head.split(b" ", 2)[1])


def main() -> None:
    """Watch until the input ends."""
    given = json.loads(sys.stdin.readline())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(given["chain"], given["key"])
    asked, anew = given["request"].encode(), given["anew"]
    watched = [_Watched(at, context, asked, anew=anew) for at in given["addresses"]]
    for line in sys.stdin:
        wanted = int(line)
        before = [one.status() for one in watched]
        held = [one.hold() for one in watched] if anew and wanted == 0 else []
        _print_json({"before": before})
        seen: dict[int, float] = {}
        while len(seen) < len(watched):
            for place, one in enumerate(watched):
                if place not in seen and one.status() == wanted:
                    seen[place] = time.monotonic()
        for thread in held:
            thread.join(_TIMEOUT_SECONDS)
        _print_json({"seen": list(seen.values()), "closed": [one.closed for one in watched] if held else []})


def _print_json(value: object) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
