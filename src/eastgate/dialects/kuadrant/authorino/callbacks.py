"""Makes the callbacks of a scheme after the decision. Their results change nothing."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import replace

from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson
from eastgate.dialects.kuadrant.authorino.calls import send
from eastgate.dialects.kuadrant.authorino.conditions import Gate, gate_of
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import Background, Fetcher

_LOG = logging.getLogger(__name__)
_SERVER = "the server of the callback"


def make_callbacks(evaluation: Evaluation, background: Background) -> None:
    """Send the request of each callback whose condition holds, in the order of their priorities."""
    services = replace(evaluation.services, fetcher=background.fetcher)
    evaluation = replace(evaluation, services=services, document=_document(evaluation))
    for callback in sorted(evaluation.scheme.callbacks, key=lambda each: each.priority):
        gate, _ = gate_of(callback.when, evaluation)
        if gate is Gate.OPEN:
            send(callback.call, evaluation, _SERVER)


def _document(evaluation: Evaluation) -> AuthorizationJson:
    """Return the document after the decision. The identity of an unrecognized caller is null."""
    document = evaluation.document.copied()
    if evaluation.recognized.identity is None and evaluation.scheme.identities:
        document.add_finding("identity", None, None, None)
    return document


class CallbackThreads:
    """Satisfies `Background`: a few threads.

    They end after `idle` seconds without a task, and start again with the next task.

    Tasks are dropped while the queue is full.
    """

    def __init__(self, fetcher: Fetcher, threads: int = 2, size: int = 1000, idle: float = 30) -> None:
        self._fetcher = fetcher
        self._threads = threads
        self._idle = idle
        self._tasks: queue.Queue[Callable[[], None]] = queue.Queue(size)
        self._lock = threading.Lock()
        self._running = 0

    @property
    def fetcher(self) -> Fetcher:
        return self._fetcher

    def submit(self, task: Callable[[], None]) -> None:
        """Put a task into the queue."""
        with self._lock:
            try:
                self._tasks.put_nowait(task)
            except queue.Full:
                return
            if self._running < self._threads:
                with contextlib.suppress(RuntimeError):  # no thread can be started now; a later task tries again
                    threading.Thread(target=self._work, name="callbacks", daemon=True).start()
                    self._running += 1

    def wait(self) -> None:
        """Wait until all tasks so far are done."""
        self._tasks.join()

    def _work(self) -> None:
        while (task := self._next()) is not None:
            try:
                task()
            except Exception as error:  # the result is not used, and the next task must run
                _LOG.warning("a callback failed: %s", type(error).__name__)  # its message may contain secrets
            finally:
                self._tasks.task_done()

    def _next(self) -> Callable[[], None] | None:
        """Return the next task; None if this thread must end."""
        try:
            return self._tasks.get(timeout=self._idle)
        except queue.Empty:
            with self._lock:  # a task that came meanwhile is in the queue, or does not rely on this thread
                try:
                    return self._tasks.get_nowait()
                except queue.Empty:
                    self._running -= 1
                    return None
