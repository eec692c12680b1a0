"""Kustomizations that are built together have the same output as alone, or are built alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from eastgate.reading.manifests import Bounds, Plain, rendering
from eastgate.reading.repository import KustomizeBuild, Part, running
from eastgate.reading.repository.builds import Builds
from tests.reading.repository.building import POLICY, environment, write

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      serviceAccountName: web
      containers:
      - name: web
        image: web
        envFrom:
        - configMapRef: {name: settings}
"""
BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: read}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
"""
READER = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: reader, namespace: default}\n"
GENERATOR = "configMapGenerator: [{name: settings, literals: [a=b]}]\n"


def _named(name: str, text: str = POLICY) -> str:
    return text.replace("name: web", f"name: {name}")


@pytest.fixture
def ran(kustomize: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of kustomizations that each run of the program has built."""
    runs: list[int] = []
    run = rendering.run

    def counted(command: Sequence[str], *more: object) -> rendering.ProgramOutput:
        folder = Path(command[-1])
        built = folder.name == ".eastgate-builds"
        runs.append((folder / "kustomization.yaml").read_text().count("../") if built else 1)
        return run(command, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "run", counted)
    return runs


def _texts(*parts: Part) -> list[tuple[str, list[str]]]:
    """Return the text and the omitted parts of each part when all are built at once."""
    place = environment(*parts)
    builds = Builds([(part, place) for part in parts], Bounds.of([place.root]))  # type: ignore[misc]
    results = [builds.result(part, place) for part in parts]  # type: ignore[arg-type]
    return [(each.text.text if each.text else "", [str(left) for left in each.left_out]) for each in results]


def _compare(*parts: Part) -> list[tuple[str, list[str]]]:
    """Build parts together and alone, and compare the output. Return it."""
    together = _texts(*parts)
    assert together == [text for part in parts for text in _texts(part)]
    return together


def test_many_are_built_in_one_run(kustomize: Path, ran: list[int]) -> None:
    names = [f"app{number}" for number in range(9)]
    for name in names:
        more = f"namespace: {name}\ncommonLabels: {{a: b}}\nimages: [{{name: web, newTag: v2}}]\n"
        write(kustomize, {f"{name}/kustomization.yaml": f"resources: [../{name}-base, d.yaml]\n{more}"})
        write(kustomize, {f"{name}/d.yaml": _named(name, DEPLOYMENT.replace("settings", f"{name}-settings"))})
        write(kustomize, {f"{name}-base/kustomization.yaml": f"resources: [p.yaml]\n{_named_generator(name)}"})
        write(kustomize, {f"{name}-base/p.yaml": _named(name)})
    parts = [KustomizeBuild(name) for name in names]
    texts = _texts(*parts)
    assert ran == [9]
    assert texts == [text for part in parts for text in _texts(part)]
    assert "name: app0-settings-" in texts[0][0]
    assert "image: web:v2" in texts[0][0]


def _named_generator(name: str) -> str:
    return GENERATOR.replace("name: settings", f"name: {name}-settings")


def test_overlays_of_one_base_are_built_apart(kustomize: Path, ran: list[int]) -> None:
    write(kustomize, {"base/kustomization.yaml": "resources: [p.yaml]\n", "base/p.yaml": POLICY})
    for name in ("dev", "prod"):
        write(kustomize, {f"{name}/kustomization.yaml": f"resources: [../base]\nnamespace: {name}\n"})
    texts = _texts(KustomizeBuild("dev"), KustomizeBuild("prod"))
    assert ran == [1, 1]
    assert ["namespace: dev" in text for text, _ in texts] == [True, False]


def test_a_reference_never_leads_to_a_generated_object_of_another(kustomize: Path, ran: list[int]) -> None:
    write(kustomize, {"a/kustomization.yaml": "resources: [d.yaml]\n", "a/d.yaml": DEPLOYMENT})
    write(kustomize, {"b/kustomization.yaml": f"resources: [p.yaml]\n{GENERATOR}", "b/p.yaml": POLICY})
    texts = _compare(KustomizeBuild("a"), KustomizeBuild("b"))
    assert "name: settings\n" in texts[0][0]
    assert "name: settings-" in texts[1][0]
    assert set(ran) == {1}


def test_a_reference_never_leads_to_a_moved_object_of_another(kustomize: Path, ran: list[int]) -> None:
    write(kustomize, {"a/kustomization.yaml": "resources: [r.yaml]\n", "a/r.yaml": BINDING})
    write(kustomize, {"b/kustomization.yaml": "resources: [s.yaml]\nnamespace: b\n", "b/s.yaml": READER})
    assert "namespace: default\n" in _compare(KustomizeBuild("a"), KustomizeBuild("b"))[0][0]
    assert set(ran) == {1}


@pytest.mark.parametrize(
    "patch",
    [
        '[{"op": "replace", "path": "/metadata/na\\u006de", "value": "other"}]',
        '[{"op": "replace", "path": "/metadata", "value": {"name": "other"}}]',
    ],
    ids=["escaped", "whole"],
)
def test_a_kustomization_with_hidden_renames_is_built_alone(patch: str, kustomize: Path, ran: list[int]) -> None:
    patches = f"patches:\n- target: {{kind: NetworkPolicy}}\n  patch: '{patch}'\n"
    for name in "abcde":
        write(kustomize, {f"{name}/kustomization.yaml": "resources: [p.yaml]\n", f"{name}/p.yaml": _named(name)})
    write(kustomize, {"c/kustomization.yaml": f"resources: [p.yaml]\n{patches}"})
    texts = _compare(*map(KustomizeBuild, "abcde"))
    assert ["  name: other\n" in text for text, _ in texts] == [False, False, True, False, False]


def test_one_that_is_broken_stops_no_other(kustomize: Path, ran: list[int]) -> None:
    for name in "abcdefgh":
        write(kustomize, {f"{name}/kustomization.yaml": "resources: [p.yaml]\n", f"{name}/p.yaml": _named(name)})
    write(kustomize, {"c/kustomization.yaml": "resources: [p.yaml]\npatches: [{path: none.yaml}]\n"})
    texts = _texts(*map(KustomizeBuild, "abcdefgh"))
    assert [bool(text) for text, _ in texts] == [name != "c" for name in "abcdefgh"]
    assert "none.yaml" in texts[2][1][0]
    assert ".eastgate-builds" not in texts[2][1][0]
    assert sum(ran) < 30


@pytest.mark.parametrize(
    "more",
    [
        "namePrefix: my-\n",
        "nameSuffix: -my\n",
        "replacements: [{source: {kind: NetworkPolicy}, targets: [{select: {kind: NetworkPolicy}}]}]\n",
        "vars: [{name: A, objref: {apiVersion: v1, kind: Pod, name: a}}]\n",
        "crds: []\nopenapi: {}\n",
    ],
)
def test_a_kustomization_with_wider_effects_is_built_alone(more: str, kustomize: Path, ran: list[int]) -> None:
    for name in "abc":
        write(kustomize, {f"{name}/kustomization.yaml": "resources: [p.yaml]\n", f"{name}/p.yaml": _named(name)})
    write(kustomize, {"b/kustomization.yaml": f"resources: [p.yaml]\n{more}"})
    _compare(*map(KustomizeBuild, "abc"))
    assert ran[0] == 2  # a and c


def test_flux_may_add_to_one_of_a_batch(kustomize: Path, ran: list[int]) -> None:
    for name in "abc":
        write(kustomize, {f"{name}/kustomization.yaml": "resources: [p.yaml]\n", f"{name}/p.yaml": _named(name)})
    overlay: dict[str, Plain] = {"commonAnnotations": {"by": "flux"}}
    texts = _compare(KustomizeBuild("a"), KustomizeBuild("b", namespace="team", overlay=overlay), KustomizeBuild("c"))
    assert ["by: flux" in text and "namespace: team" in text for text, _ in texts] == [False, True, False]
    assert ran[0] == 3


def test_builds_of_a_batch_are_not_repeated(
    kustomize: Path, ran: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("EASTGATE_CACHE")
    for name in "abc":
        write(kustomize, {f"{name}/kustomization.yaml": "resources: [p.yaml]\n", f"{name}/p.yaml": _named(name)})
    first = _texts(*map(KustomizeBuild, "abc"))
    assert [text for name in "abc" for text in _texts(KustomizeBuild(name))] == first
    assert ran == [3]
    write(kustomize, {"b/p.yaml": _named("b").replace("port: 80", "port: 81")})
    assert "port: 81" in _texts(*map(KustomizeBuild, "abc"))[1][0]
    assert ran == [3, 1]
