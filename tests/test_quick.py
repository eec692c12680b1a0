"""A quick test starts no process and connects to no other machine."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import quick

COMMAND = [sys.executable, "-c", "pass"]


async def _start() -> None:
    await asyncio.create_subprocess_exec(*COMMAND)


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run(COMMAND, check=True),
        lambda: asyncio.run(_start()),
        lambda: os.system("true"),  # noqa: S605
        lambda: os.posix_spawn(sys.executable, COMMAND, {}),
        os.fork,
    ],
)
def test_a_quick_test_cannot_start_a_process(start: Callable[[], object]) -> None:
    with pytest.raises(AssertionError, match="starts a process"):
        start()


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80, 0, 0)])
def test_a_quick_test_cannot_connect_to_another_machine(address: tuple[str, int]) -> None:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as client, pytest.raises(AssertionError, match="not this machine"):
        client.connect(address)


def test_a_quick_test_may_talk_to_itself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass


def test_every_file_that_is_listed_is_there() -> None:
    assert [file for file in (*quick.REAL, *quick.SLOW) if not (quick.ROOT / file).exists()] == []


@pytest.mark.real
def test_a_real_test_may_start_a_process() -> None:
    assert subprocess.run(COMMAND, check=True).returncode == 0


@settings(max_examples=1000)
@given(st.integers())
def _generated(number: int) -> None:
    assert number == number


def test_a_generated_test_looks_at_few_examples_also_where_it_asks_for_many() -> None:
    before = quick.settings_of(_generated)
    assert before is not None
    assert before.max_examples == 1000
    quick.fewer_examples(_generated)
    after = quick.settings_of(_generated)
    assert after is not None
    assert after.max_examples == quick.QUICK_EXAMPLES
