"""Makes the callbacks of a scheme, after the decision. Whatever becomes of them changes nothing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import replace

from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson
from eastgate.dialects.kuadrant.authorino.calls import send
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import Background, Fetcher
from eastgate.dialects.kuadrant.authorino.gates import Gate, gate_of

__all__ = ["CallbackThreads", "make_callbacks"]

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
    """Return the document after the decision. The identity of a caller who was not recognized is null."""
    document = evaluation.document.copied()
    if evaluation.recognized.identity is None and evaluation.scheme.identities:
        document.learn("identity", None, None, None)
    return document


class CallbackThreads:
    """Satisfies `Background`: threads that start with the first task. Tasks that find the queue full are dropped."""

    def __init__(self, fetcher: Fetcher, threads: int = 2, size: int = 1000) -> None:
        self._fetcher = fetcher
        self._threads = threads
        self._tasks: queue.Queue[Callable[[], None]] = queue.Queue(size)
        self._lock = threading.Lock()
        self._started = False

    @property
    def fetcher(self) -> Fetcher:
        return self._fetcher

    def submit(self, task: Callable[[], None]) -> None:
        """Put a task into the queue."""
        with self._lock:
            if not self._started:
                self._started = True
                for _ in range(self._threads):
                    threading.Thread(target=self._work, name="callbacks", daemon=True).start()
        try:
            self._tasks.put_nowait(task)
        except queue.Full:
            return

    def wait(self) -> None:
        """Wait until all tasks so far are done."""
        self._tasks.join()

    def _work(self) -> None:
        while True:
            task = self._tasks.get()
            try:
                task()
            except Exception:  # noqa: S110 - nobody waits for it, and the next task must be done
                pass
            finally:
                self._tasks.task_done()
