"""Checks on threads: an abandoned check is not kept in memory."""

from __future__ import annotations

import asyncio
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

from eastgate.control.authorizer.deciding import OpenCheck
from eastgate.envoy.authz.server import answer_on_thread
from tests.control.authorizer.test_deciding import call
from tests.control.authorizer.worlds import live_authorizer
from tests.patience import PATIENCE


class _Check:
    """An object whose deletion a test can observe."""


def test_a_cancelled_check_is_forgotten_before_a_thread_is_free() -> None:
    asked: list[_Check] = []

    async def run(threads: ThreadPoolExecutor, is_free: threading.Event) -> None:
        busy = answer_on_thread(threads, is_free.wait, PATIENCE)
        check = _Check()
        waiting, kept = answer_on_thread(threads, asked.append, check), weakref.ref(check)
        del check
        assert kept() is not None
        waiting.cancel()
        await asyncio.sleep(0)
        assert kept() is None
        is_free.set()
        assert await busy
        assert await answer_on_thread(threads, len, "four") == 4
        assert asked == []

    with ThreadPoolExecutor(1) as threads:
        asyncio.run(run(threads, threading.Event()))


def test_a_check_that_is_left_open_is_not_kept_by_itself() -> None:
    waiting = live_authorizer().begin(call("auditor"))
    assert isinstance(waiting, OpenCheck)
    kept = weakref.ref(waiting)
    del waiting
    assert kept() is None
