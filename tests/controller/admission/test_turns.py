"""Clients that use a few threads in turns."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from eastgate.controller.admission.turns import FairThreads, ReviewClient
from tests.patience import PATIENCE


class Turns:
    """Work that records its client, and continues on a signal."""

    def __init__(self, threads: int, each: int = 1) -> None:
        self.threads = FairThreads(threads, "turns", each=each)
        self.begun: list[ReviewClient] = []
        self.go_on = threading.Event()
        self._lock = threading.Lock()

    def ask(self, client: ReviewClient, *, waits: bool = True) -> Future[ReviewClient]:
        def work() -> ReviewClient:
            with self._lock:
                self.begun.append(client)
            if waits:
                assert self.go_on.wait(PATIENCE)
            return client

        return self.threads.submit(client, work)


@pytest.fixture
def one() -> Iterator[Turns]:
    turns = Turns(1)
    yield turns
    turns.go_on.set()
    turns.threads.close()


@pytest.fixture
def two() -> Iterator[Turns]:
    turns = Turns(2)
    yield turns
    turns.go_on.set()
    turns.threads.close()


def test_peers_take_turns_and_so_do_the_users_of_one(one: Turns) -> None:
    clients = [ReviewClient("a", "u")] * 3 + [ReviewClient("a", "v"), ReviewClient("b", "u"), ReviewClient("b", "u")]
    asked = [one.ask(client) for client in clients]
    one.go_on.set()
    for each in asked:
        each.result(PATIENCE)
    a, b = ReviewClient("a", "u"), ReviewClient("b", "u")
    assert one.begun == [a, a, b, ReviewClient("a", "v"), b, a]


@pytest.mark.parametrize("other", [ReviewClient("a", "v"), ReviewClient("b", "u")])
def test_a_busy_client_leaves_a_thread_to_others(two: Turns, other: ReviewClient) -> None:
    for _ in range(12):
        two.ask(ReviewClient("a", "u"))
    if other.peer == "a":  # a peer leaves one thread to other peers, and its users share the rest
        two.go_on.set()
    assert two.ask(other, waits=False).result(PATIENCE) == other
    assert two.begun.index(other) <= 2


def test_many_users_of_one_peer_leave_a_thread_to_other_peers(two: Turns) -> None:
    for number in range(12):
        two.ask(ReviewClient("a", f"user-{number}"))
    assert two.ask(ReviewClient("b", "u"), waits=False).result(PATIENCE) == ReviewClient("b", "u")
    assert len([client for client in two.begun if client.peer == "a"]) == 1


def test_work_that_is_cancelled_before_its_turn_never_begins(one: Turns) -> None:
    one.ask(ReviewClient("a", "u"))
    cancelled = one.ask(ReviewClient("a", "v"))
    assert cancelled.cancel()
    last = one.ask(ReviewClient("a", "w"))
    one.go_on.set()
    last.result(PATIENCE)
    assert ReviewClient("a", "v") not in one.begun


def test_an_error_is_raised_where_the_result_is_awaited(one: Turns) -> None:
    failing = one.threads.submit(ReviewClient(), lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.result(PATIENCE)
    assert one.ask(ReviewClient(), waits=False).result(PATIENCE) == ReviewClient()


def test_the_accounts_of_a_namespace_are_one_client() -> None:
    first, second = (ReviewClient.of("a", f"system:serviceaccount:shop:{name}") for name in ("web", "cart"))
    assert first == second
    assert first != ReviewClient.of("a", "system:serviceaccount:sandbox:web")
    assert ReviewClient.of("a", "jane") != ReviewClient.of("a", "joe")
    assert ReviewClient.of(None, "jane") == ReviewClient("", "jane")


def test_after_its_end_no_work_is_begun(one: Turns) -> None:
    one.ask(ReviewClient("a", "u"))
    waiting = one.ask(ReviewClient("a", "v"))
    one.threads.close()
    assert waiting.cancelled()
    assert one.ask(ReviewClient("a", "w")).cancelled()
