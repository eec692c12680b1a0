"""How tests run: generated ones anew each time on a developer's machine, the same each time in CI; which are quick;
what coverage looks at; and real servers.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest
from hypothesis import settings

from tests import quick, tracing
from tests.programs import ApiServer

_PROGRAMS = {"apiserver", "authorino", "expressions", "istio", "kuadrant", "netpol", "real", "spire"}

# A shared machine may stand still for a while, so no single example is held to a deadline.
settings.register_profile("explore", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that start no process, with few examples each")


def pytest_configure() -> None:
    quick.watch()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if (marker := quick.mark_of(item.path)) is not None:
            item.add_marker(marker)
    if config.getoption("--quick"):
        chosen = [item for item in items if not any(map(item.get_closest_marker, ("real", "slow")))]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen
        for item in items:
            quick.fewer_examples(getattr(item, "obj", None))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    with _guarded(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with _guarded(item), _traced(item):
        return (yield)


def _guarded(item: pytest.Item) -> AbstractContextManager[None]:
    may_start = _PROGRAMS & {marker.name for marker in item.iter_markers()}
    return nullcontext() if may_start else quick.without_processes()


def _traced(item: pytest.Item) -> AbstractContextManager[None]:
    if item.get_closest_marker("untraced") is not None:
        return tracing.without_tracing()
    return tracing.trace_some_examples(getattr(item, "obj", None))


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that tests with the marker `apiserver` share. Nothing is installed on it at first."""
    with ApiServer(tmp_path_factory.mktemp("api-server")) as server:
        yield server
