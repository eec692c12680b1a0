"""The order of the tests. Tests that need a program which is still being built from source run last.

Before them, files that wait for real processes alternate with files of quick tests, so that no processor is idle. The
longest files of each kind come first, so that no worker ends with a long file alone. The tests of a file stay
together, because they share the servers that they start.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.programs.building import are_ready

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

TESTS_PER_BATCH = 60
"""The most tests of a file that a worker gets at once. Several workers share a longer file."""

BUILT = (
    "tests/controller/gateways/test_conformance.py",
    "tests/deploy/",
    "tests/envoy/grpc/test_h2spec.py",
    "tests/reading/manifests/test_kustomize.py",
    "tests/reading/repository/test_builds.py",
    "tests/reading/repository/test_builds_charts.py",
    "tests/reading/repository/test_builds_hostile.py",
    "tests/reading/repository/test_builds_together.py",
)
"""Files that need a program that is built from source, and no API server: tests with a server have a marker."""

PROGRAMS = ("kube-apiserver", "etcd", "kubectl", "kube-controller-manager", "helm", "h2spec")
"""The programs that `make test` builds from source, in the order in which it builds them."""

LONG = (
    "tests/test_conformance.py",
    "tests/test_bench.py",
    "tests/reports/graph/test_pods.py",
    "tests/convert/test_kuadrant.py",
    "tests/reports/graph/test_forms.py",
    "tests/attacks/test_terminal.py",
    "tests/controller/admission/test_api_server.py",
    "tests/controller/gateways/test_on_server.py",
    "tests/controller/test_whole_cluster.py",
    "tests/faults/test_many_rules.py",
    "tests/deploy/test_installing.py",
    "tests/docs/test_console.py",
    "tests/attacks/test_sizes.py",
    "tests/worlds/test_generated_network.py",
    "tests/reports/diff/test_generated_pairs.py",
    "tests/reports/crds/test_server.py",
    "tests/deploy/test_operating.py",
    "tests/controller/admission/test_attacks.py",
    "tests/worlds/test_generated_kuadrant_paths.py",
    "tests/deploy/test_chart.py",
    "tests/controller/test_memory.py",
    "tests/worlds/test_generated_clusters.py",
    "tests/dialects/kuadrant/schemes/test_no_document_crashes.py",
    "tests/worlds/test_generated_effects.py",
    "tests/worlds/test_generated_kuadrant.py",
    "tests/differential/test_gateways_decide_as_the_engine.py",
    "tests/worlds/test_generated_tool_questions.py",
    "tests/expressions/test_rego.py",
    "tests/dialects/kuadrant/test_schemes_no_document_crashes.py",
    "tests/worlds/test_generated_partial_questions.py",
    "tests/authority/sources/test_sizes.py",
    "tests/reach/test_reachability_equals_check.py",
    "tests/cli/test_broken_saves.py",
    "tests/engine/test_long_lists.py",
    "tests/attacks/test_paths.py",
    "tests/test_project.py",
    "tests/reports/lint/test_truth.py",
    "tests/authority/sources/test_following.py",
    "tests/control/authorizer/test_deceived_proxies.py",
    "tests/local/test_network_policies.py",
    "tests/deploy/test_permissions.py",
    "tests/engine/test_compiled_equals_reference.py",
    "tests/programs/test_api_server.py",
    "tests/controller/admission/semantic/test_generated.py",
    "tests/differential/test_envoy_decides_as_the_engine.py",
    "tests/controller/test_semantic_admission.py",
    "tests/authority/test_changes.py",
    "tests/faults/test_open_requests.py",
    "tests/reports/test_effective.py",
    "tests/reports/lint/test_wording.py",
    "tests/attacks/test_headers.py",
    "tests/authority/sources/test_stale.py",
    "tests/reports/crds/test_command.py",
    "tests/convert/test_gep_generated.py",
    "tests/attacks/test_routes.py",
    "tests/worlds/test_network_oracle.py",
    "tests/worlds/test_generated_access.py",
    "tests/faults/test_slow_clients.py",
)
"""Files that take more than ten seconds, the longest first."""

_REAL = ("real", "slow")
_MUST_BUILD = "EASTGATE_TESTS_MUST_BUILD"  # decided once, since all workers must use the same order


def pytest_configure() -> None:
    """Find out whether programs must be built, before the workers start."""
    os.environ.setdefault(_MUST_BUILD, "no" if are_ready(*PROGRAMS) else "yes")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests."""
    kinds: dict[str, dict[str, list[pytest.Item]]] = {"quick": {}, "real": {}, "built": {}}
    must_build = os.environ[_MUST_BUILD] == "yes"
    for item in items:
        kinds[_kind_of(item, must_build)].setdefault(_file_of(item.nodeid), []).append(item)
    taking_turns = [placed for kind in ("real", "quick") for placed in _spread(_longest_first(kinds[kind]))]
    files = [items for _, items in sorted(taking_turns, key=lambda placed: placed[0])]
    files += _longest_first(kinds["built"])
    items[:] = [item for items in files for item in items]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Distribute the tests in this order, unless the command line has another way (`--dist`)."""
    return InOrder(config, log) if config.getoption("dist") == "load" else None


class InOrder(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """A scheduler that gives each idle worker the next tests of a file."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False
        self._units: dict[str, str] = {}

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Store the collection of a worker as an indexed list, since the scheduler looks up the index of each test."""
        super().add_node_collection(node, collection)
        if not self._units:
            self._units = units_of(collection)
        self.registered_collections[node] = _Indexed(collection)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Remove a batch whose tests have all run: the scheduler counts the remaining work after every test."""
        unit = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if all(self.assigned_work[node][unit].values()):
            del self.assigned_work[node][unit]

    def _split_scope(self, nodeid: str) -> str:
        return self._units[nodeid]


class _Indexed(list[str]):
    """A list with a fast `index`."""

    def __init__(self, values: Iterable[str]) -> None:
        super().__init__(values)
        self._places = {value: place for place, value in enumerate(self)}

    def index(self, value: str, *_: object) -> int:
        return self._places[value]


def units_of(nodeids: Iterable[str]) -> dict[str, str]:
    """Return the name of the batch of each test: neighbours of one file, which one worker runs."""
    units: dict[str, str] = {}
    for number, (file, neighbours) in enumerate(itertools.groupby(nodeids, _file_of)):
        units |= {nodeid: f"{file} {number}.{place // TESTS_PER_BATCH}" for place, nodeid in enumerate(neighbours)}
    return units


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _kind_of(item: pytest.Item, must_build: bool) -> str:
    needs_built = item.get_closest_marker("apiserver") is not None or item.nodeid.startswith(BUILT)
    if needs_built and must_build:
        return "built"
    return "real" if needs_built or any(map(item.get_closest_marker, _REAL)) else "quick"


def _longest_first(files: dict[str, list[pytest.Item]]) -> list[list[pytest.Item]]:
    places = {file: place for place, file in enumerate(LONG)}
    return [files[file] for file in sorted(files, key=lambda file: places.get(file, len(places)))]


def _spread(files: list[list[pytest.Item]]) -> Iterable[tuple[float, list[pytest.Item]]]:
    """Return each file with its position, from 0 to 1."""
    return [(place / len(files), items) for place, items in enumerate(files)]
