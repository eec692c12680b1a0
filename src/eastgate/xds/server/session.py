"""One gRPC stream of a proxy that has proved who it is: reads, and writes when there is something to say.

A session ends when the proxy goes, when it misbehaves, or when it is told to. It has at most one response in hand, so a
proxy that does not read costs no more than that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import grpc

from eastgate.xds.server.streams import Answer, ProtocolError, Stream, encode

__all__ = ["Context", "End", "Session"]

Context: TypeAlias = "grpc.aio.ServicerContext[Any, bytes]"
End: TypeAlias = tuple[grpc.StatusCode, str]


class Session:
    """The two halves of one stream. `answered`, `sent` and `quiet` are told of what happens."""

    def __init__(
        self,
        stream: Stream,
        context: Context,
        *,
        answered: Callable[[Session, Answer], None],
        sent: Callable[[str, int], None],
        quiet: Callable[[], None],
    ) -> None:
        self.stream = stream
        self._context = context
        self._answered = answered
        self._sent = sent
        self._quiet = quiet
        self._wake = asyncio.Event()
        self._end: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    @property
    def node(self) -> str:
        """Whose stream this is."""
        return self.stream.node

    def changed(self, types: Iterable[str]) -> None:
        """The store has changed for this node."""
        self.stream.changed(types)
        self._wake.set()

    def end(self, code: grpc.StatusCode, details: str) -> None:
        """Let this stream end with this status."""
        if not self._end.done():
            self._end.set_result((code, details))

    async def run(self, first: Any) -> End | None:
        """Serve until the end, and tell why it ended, if it is not the proxy that ended it."""
        halves = [asyncio.create_task(self._read(first)), asyncio.create_task(self._write())]
        waited: list[asyncio.Future[Any]] = [*halves, self._end]
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for half in halves:
                half.cancel()
            results = await asyncio.gather(*halves, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not self._context.cancelled():
                raise result
        return self._end.result() if self._end.done() else None

    async def _read(self, first: Any) -> None:
        request = first
        try:
            while request is not grpc.aio.EOF:
                answer = self.stream.receive(request)
                if answer is not None:
                    self._answered(self, answer)
                self._wake.set()
                request = await self._context.read()
        except ProtocolError as error:
            self.end(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while (response := self.stream.next_response()) is not None:
                encoded = encode(response)
                self._sent(response.type_url, len(encoded))
                await self._context.write(encoded)
            self._quiet()
