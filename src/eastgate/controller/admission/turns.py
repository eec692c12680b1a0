"""Threads that work for several clients in turns, so that a client with many requests does not block the others."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
_Job = tuple["Future[Any]", Callable[[], Any]]


class ReviewClient(NamedTuple):
    """The client of a piece of work: the peer of a connection, and the user that the peer names.

    A peer may name any user, so turns are given to peers first.
    """

    peer: str = ""
    user: str = ""

    @classmethod
    def of(cls, peer: str | None, username: str) -> ReviewClient:
        """Return the client of a review. All ServiceAccounts of a namespace are one user: a tenant can add many."""
        kind, found, _ = username.rpartition(":")
        is_account = found and kind.startswith("system:serviceaccount:")
        return cls(peer or "", kind if is_account else username)


class FairThreads:
    """Threads that work in turns: between the waiting peers, and for each peer between its users.

    One client has at most `each` of the threads at a time, and one peer always leaves one thread to the others. Work
    that is cancelled before its turn never begins.
    """

    def __init__(self, threads: int, name: str, *, each: int = 1) -> None:
        self._executor = ThreadPoolExecutor(threads, name)
        self._lock = Lock()
        self._is_closed = False
        self._free = threads
        self._each = each
        self._most = max(1, threads - 1)
        self._running: Counter[str | ReviewClient] = Counter()
        self._waiting: dict[str, dict[str, deque[_Job]]] = {}  # in the order of their turns

    def submit(self, client: ReviewClient, work: Callable[[], T]) -> Future[T]:
        """Queue work for the turn of a client."""
        future: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                future.cancel()
                return future
            self._waiting.setdefault(client.peer, {}).setdefault(client.user, deque()).append((future, work))
            self._begin()
        return future

    def close(self) -> None:
        """Begin no more work. Cancel the waiting work."""
        with self._lock:
            self._is_closed = True
            for users in self._waiting.values():
                for future, _ in (job for jobs in users.values() for job in jobs):
                    future.cancel()
            self._waiting.clear()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        while self._free and (client := self._next()) is not None:
            users = self._waiting.pop(client.peer)
            jobs = users.pop(client.user)
            job = jobs.popleft()
            if jobs:
                users[client.user] = jobs
            if users:
                self._waiting[client.peer] = users
            self._free -= 1
            self._running.update((client, client.peer))
            self._executor.submit(self._run, client, *job)

    def _next(self) -> ReviewClient | None:
        for peer, users in self._waiting.items():
            if self._running[peer] < self._most:
                for user in users:
                    if self._running[client := ReviewClient(peer, user)] < self._each:
                        return client
        return None

    def _run(self, client: ReviewClient, future: Future[Any], work: Callable[[], Any]) -> None:
        try:
            if future.set_running_or_notify_cancel():
                future.set_result(work())
        except BaseException as error:  # the caller of the result gets the error
            future.set_exception(error)
        finally:
            with self._lock:
                self._free += 1
                for counted in (client, client.peer):
                    self._running[counted] -= 1
                    if not self._running[counted]:
                        del self._running[counted]
                self._begin()
