"""One oracle for a run of tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.istio.oracle import Oracle


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    if {name for _, name in socket.if_nameindex()} != {"lo"}:
        pytest.fail("pods have addresses of their own: `make istio` runs them in a network namespace")
    with Oracle(tmp_path_factory.mktemp("istio")) as started:
        yield started
