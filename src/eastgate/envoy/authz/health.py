"""The health service of gRPC, `grpc.health.v1.Health`. Its messages have one field each, and are written by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Set
from typing import Final

from eastgate.envoy.grpc.calls import CallError, GrpcStatus, Method

HEALTH_SERVICE: Final = "grpc.health.v1.Health"
SERVING: Final = b"\x08\x01"
NOT_SERVING: Final = b"\x08\x02"
_SERVICE_UNKNOWN: Final = b"\x08\x03"
_SERVICE_FIELD: Final = 0x0A
_LOOK_AGAIN: Final = 0.2  # seconds


def health_methods(is_serving: Callable[[], bool], services: Set[str], most_watchers: int) -> dict[str, Method]:
    """Return the methods of the health service, by their paths.

    `services` are those that share one health; empty: the whole server.
    """
    watchers: set[object] = set()

    def status() -> bytes:
        return SERVING if is_serving() else NOT_SERVING

    def check(request: bytes) -> bytes:
        if _service(request) not in services:
            raise CallError(GrpcStatus.NOT_FOUND, "there is no such service")
        return status()

    async def watch(request: bytes) -> AsyncIterator[bytes]:
        if _service(request) not in services:
            yield _SERVICE_UNKNOWN
            return
        if len(watchers) >= most_watchers:
            raise CallError(GrpcStatus.RESOURCE_EXHAUSTED, "too many watch")
        watchers.add(watcher := object())
        try:
            last = b""
            while True:
                now = status()
                if now != last:
                    yield now
                    last = now
                await asyncio.sleep(_LOOK_AGAIN)
        finally:
            watchers.discard(watcher)

    return {f"/{HEALTH_SERVICE}/Check": check, f"/{HEALTH_SERVICE}/Watch": watch}


def _service(request: bytes) -> str | None:
    """Return the service that a request names; None where it cannot be read."""
    if not request:
        return ""
    if request[0] != _SERVICE_FIELD or len(request) < 2 or request[1] >= 0x80 or len(request) != 2 + request[1]:
        return None
    return request[2:].decode("utf-8", "replace")
