"""Whether proxies listen already: asked of the kernel, because a connection to find out would be one to decide on."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Collection

__all__ = ["until_listening"]

_LISTEN = "0A"
_PAUSE = 0.01


async def until_listening(wanted: Collection[tuple[str, int]], timeout: float) -> None:
    """Wait until all of these addresses and ports are open. Raises TimeoutError."""
    ends = time.monotonic() + timeout
    while missing := set(wanted) - _listening():
        if time.monotonic() > ends:
            named = ", ".join(f"{address}:{port}" for address, port in sorted(missing)[:3])
            raise TimeoutError(f"{len(missing)} ports are not open after {timeout:.0f} s, such as {named}")
        await asyncio.sleep(_PAUSE)


def _listening() -> set[tuple[str, int]]:
    found = set()
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in list(table)[1:]:
            fields = line.split()
            if fields[3] == _LISTEN:
                address, _, port = fields[1].partition(":")
                packed = bytes.fromhex(address)[::-1]
                found.add((str(ipaddress.IPv4Address(packed)), int(port, 16)))
    return found
