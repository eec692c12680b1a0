"""One real call through the mesh, from the address of a chosen workload."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from eastgate.local.machine.connection import CallConnection, Called, HttpRequest, Target, problem
from eastgate.local.machine.http1 import Malformed

__all__ = ["call"]


async def call(
    target: Target,
    *,
    tls: ssl.SSLContext | None = None,
    source_address: str | None = None,
    request: HttpRequest | bytes | None = None,
    timeout: float = 5.0,
    enough: int | None = None,
) -> Called:
    """Call once and close. Network errors are returned, not raised."""
    began = time.monotonic()
    try:
        connection = await CallConnection.open(target, tls=tls, source_address=source_address, timeout=timeout)
        async with connection, _sending(connection, request):
            left = max(0.001, timeout - (time.monotonic() - began))
            if isinstance(request, HttpRequest):
                called = await connection.response(left)
            else:
                called = await connection.raw(left, enough)
    except (OSError, EOFError, Malformed) as error:
        called = Called(0, error=problem(error))
    return replace(called, elapsed_ms=(time.monotonic() - began) * 1000)


@asynccontextmanager
async def _sending(connection: CallConnection, request: HttpRequest | bytes | None) -> AsyncIterator[None]:
    """Send in the background: an answer may come before everything is sent, and the rest may not be needed."""
    if request is None:
        yield
        return
    data = connection.prepare(request)
    sending = asyncio.create_task(connection.send(data))
    try:
        yield
    finally:
        sending.cancel()
        await asyncio.wait([sending])
