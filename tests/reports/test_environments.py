"""`load` reads one environment of a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

import eastgate
from tests.environments import one_for_each_folder

_POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: shop}
spec: {containers: [{name: main, ports: [{containerPort: 80}]}]}
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("eastgate.reading.repository.find_environments", one_for_each_folder)
    for name in ("dev", "prod"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pod.yaml").write_text(_POD.replace("NAME", name), encoding="utf-8")
    return tmp_path


def test_one_of_several_environments_is_chosen_by_its_name(repo: Path) -> None:
    assert set(eastgate.load(repo, environment="prod").world.workloads) == {"shop/prod"}
    assert set(eastgate.load(repo / "dev").world.workloads) == {"shop/dev"}


def test_without_a_choice_the_error_lists_the_environments(repo: Path) -> None:
    with pytest.raises(eastgate.ManifestError, match="there are 2 environments: dev, prod") as raised:
        eastgate.load(repo)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.help == 'choose one: environment="dev"'


def test_an_environment_that_does_not_exist_is_an_error(repo: Path) -> None:
    with pytest.raises(eastgate.ManifestError, match="there is no environment `pord`"):
        eastgate.load(repo, environment="pord")
