"""The health service of gRPC, `grpc.health.v1.Health`. Its messages have one field each, and are written by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Set
from typing import Any, Final

import grpc

__all__ = ["HEALTH_SERVICE", "NOT_SERVING", "SERVING", "health_handlers"]

HEALTH_SERVICE: Final = "grpc.health.v1.Health"
SERVING: Final = b"\x08\x01"
NOT_SERVING: Final = b"\x08\x02"
_SERVICE_UNKNOWN: Final = b"\x08\x03"
_SERVICE_FIELD: Final = 0x0A
_LOOK_AGAIN: Final = 0.2  # seconds


def health_handlers(
    is_serving: Callable[[], bool], services: Set[str], most_watchers: int
) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """Return the methods of the health service. `services` are those that share one health; empty: the whole server.

    Whoever watches holds a thread, so that only so many can.
    """
    watchers: list[object] = []

    def status() -> bytes:
        return SERVING if is_serving() else NOT_SERVING

    def check(request: bytes, context: grpc.ServicerContext) -> bytes:
        if _service(request) not in services:
            context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service")
        return status()

    def watch(request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        if _service(request) not in services:
            yield _SERVICE_UNKNOWN
            return
        if len(watchers) >= most_watchers:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watch")
        watchers.append(context)
        try:
            last = b""
            while context.is_active():
                now = status()
                if now != last:
                    yield now
                    last = now
                time.sleep(_LOOK_AGAIN)
        finally:
            watchers.remove(context)

    return {
        "Check": grpc.unary_unary_rpc_method_handler(check),
        "Watch": grpc.unary_stream_rpc_method_handler(watch),
    }


def _service(request: bytes) -> str | None:
    """Return the service that a request names; None where it cannot be read."""
    if not request:
        return ""
    if request[0] != _SERVICE_FIELD or len(request) < 2 or request[1] >= 0x80 or len(request) != 2 + request[1]:
        return None
    return request[2:].decode("utf-8", "replace")
