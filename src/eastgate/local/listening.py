"""Waits until proxies listen, by asking the kernel: a connection to find out would be one to decide on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection

from eastgate.local.machine import procfs

_PAUSE = 0.01


async def wait_until_listening(wanted: Collection[tuple[str, int]], timeout: float) -> None:
    """Wait until all of these addresses and ports are open. Raises TimeoutError."""
    ends = time.monotonic() + timeout
    while missing := set(wanted) - _listening():
        if time.monotonic() > ends:
            examples = ", ".join(f"{address}:{port}" for address, port in sorted(missing)[:3])
            raise TimeoutError(f"{len(missing)} ports are not open after {timeout:.0f} s, such as {examples}")
        await asyncio.sleep(_PAUSE)


def _listening() -> set[tuple[str, int]]:
    return {(str(address), port) for address, port in procfs.listening()}
