"""Answers the checks of gateways on an event loop of its own: neither it nor the control plane holds up the other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from eastgate.control.endpoints import AuthorizerEndpoint
from eastgate.envoy.authz.server import CheckReply, CheckServer, ReceivedCheck
from eastgate.envoy.authz.threads import answer_on_thread

_THREADS: Final = 16
_MOST_OPEN: Final = 1040  # checks, those that are being decided among them
_OVERLOAD: Final = CheckReply(allowed=False, status=503)


class CheckThread:
    """Serves checks at an endpoint. Each is answered on one of several threads; what is over the limit is refused."""

    def __init__(self, answer: Callable[[ReceivedCheck], CheckReply], max_bytes: int) -> None:
        self._decide = answer
        self._server = CheckServer(self._answer, calls=_MOST_OPEN, max_bytes=max_bytes)
        self._pool = ThreadPoolExecutor(_THREADS, "check")
        self._open = 0
        self._running: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None
        self._listener: asyncio.Server | None = None

    def start(self, endpoint: AuthorizerEndpoint) -> None:
        """Listen, and begin to answer. Raises OSError."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="checks", daemon=True)
        thread.start()
        self._running = loop, thread
        try:
            asyncio.run_coroutine_threadsafe(self._listen(endpoint), loop).result()
        except OSError:
            self.stop(0.0)
            raise

    def stop(self, grace: float) -> None:
        """Stop listening, and wait for what is open, at most so many seconds."""
        if self._running is None:
            return
        (loop, thread), self._running = self._running, None
        asyncio.run_coroutine_threadsafe(self._close(grace), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _listen(self, endpoint: AuthorizerEndpoint) -> None:
        self._listener = await endpoint.listen(self._server.protocol)

    async def _close(self, grace: float) -> None:
        if self._listener is not None:
            self._listener.close()
        await self._server.drain(grace)
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _answer(self, received: ReceivedCheck) -> CheckReply | Awaitable[CheckReply]:
        if self._open >= _MOST_OPEN:
            return _OVERLOAD
        self._open += 1
        coming = answer_on_thread(self._pool, self._decide, received)
        coming.add_done_callback(self._finished)
        return coming

    def _finished(self, _coming: asyncio.Future[CheckReply]) -> None:
        self._open -= 1
