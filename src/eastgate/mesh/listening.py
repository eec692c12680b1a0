"""Whether proxies listen already: asked of the kernel, because a connection to find out would be one to decide on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection

from eastgate.mesh.local import procfs

__all__ = ["until_listening"]

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
    return {(str(address), port) for address, port in procfs.listening()}
