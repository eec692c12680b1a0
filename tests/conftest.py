"""Configuration of the tests: reproducible examples (or new ones with `--soak`), quick tests, coverage, order, and
the fixtures of real servers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

from tests import missing, order, quick, tracing
from tests.programs import ApiServer, ControllerManager
from tests.programs.building import are_missing

_NO_API_SERVER = missing.lacks("a Kubernetes API server", "install Go to build it, or set KUBEBUILDER_ASSETS")
_PROGRAMS = {"apiserver", "authorino", "expressions", "istio", "kuadrant", "netpol", "real", "spire"}

# A shared machine may stand still for a while, so no single example is held to a deadline.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that start no process, with few examples each")
    parser.addoption(
        "--soak",
        type=int,
        default=0,
        metavar="TIMES",
        help="only generated tests, with TIMES as many examples, new ones",
    )


def pytest_configure(config: pytest.Config) -> None:
    os.environ["EASTGATE_CACHE"] = "off"  # each test builds its own results
    quick.watch()
    config.pluginmanager.register(order)
    config.pluginmanager.register(missing)
    if config.getoption("--soak"):
        settings.load_profile("explore")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if (marker := quick.mark_of(item.path)) is not None:
            item.add_marker(marker)
        if item.get_closest_marker("apiserver") is not None and _is_without_api_server():
            item.add_marker(pytest.mark.skip(reason=_NO_API_SERVER))
    if config.getoption("--quick"):
        _choose(config, items, quick.is_quick)
    if times := config.getoption("--soak"):
        _choose(config, items, lambda item: quick.settings_of(getattr(item, "obj", None)) is not None)
        for item in items:
            quick.more_examples(getattr(item, "obj", None), times)
        return
    for item in items:
        quick.fewer_examples(
            getattr(item, "obj", None), quick.QUICK_EXAMPLES if config.getoption("--quick") else quick.MAX_EXAMPLES
        )


def _choose(config: pytest.Config, items: list[pytest.Item], is_chosen: Callable[[pytest.Item], bool]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if not is_chosen(item)])
    items[:] = filter(is_chosen, items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    with _guarded(item), _covered(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with _guarded(item), _traced(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    with _covered(item):
        return (yield)


def _is_without_api_server() -> bool:
    return not os.environ.get("CI") and are_missing("etcd", "kube-apiserver", "kubectl")


def _guarded(item: pytest.Item) -> AbstractContextManager[None]:
    may_start = _PROGRAMS & {marker.name for marker in item.iter_markers()}
    return nullcontext() if may_start else quick.without_processes()


def _traced(item: pytest.Item) -> AbstractContextManager[None]:
    if _is_covered(item):
        return tracing.trace_some_examples(getattr(item, "obj", None))
    return tracing.without_tracing()


def _covered(item: pytest.Item) -> AbstractContextManager[None]:
    return nullcontext() if _is_covered(item) else tracing.without_tracing()


def _is_covered(item: pytest.Item) -> bool:
    return quick.is_quick(item) and item.get_closest_marker("untraced") is None


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Share an API server among the tests of a worker.

    A test uses its own namespaces (`namespace`) and does not stop the server. CRDs that a test installs (`install`)
    stay. A test leaves behind nothing else that affects other namespaces.
    """
    with ApiServer(tmp_path_factory.mktemp("api-server")) as server:
        yield server


@pytest.fixture
def own_api_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ApiServer]:
    """Run an API server for one test, which may stop and restart it. The parameter has options of kube-apiserver."""
    folder = tmp_path / "api-server"
    folder.mkdir()
    with ApiServer(folder, getattr(request, "param", ())) as server:
        yield server


@pytest.fixture(scope="module")
def controller_manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerManager]:
    """Run the Kubernetes controllers, with one API server for each test module (`server`)."""
    folder = tmp_path_factory.mktemp("controllers")
    with ApiServer(folder, pods_need_accounts=True) as server, ControllerManager(server) as controllers:
        yield controllers
