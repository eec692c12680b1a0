"""Every layout of tests/repositories has the environments that its `environments.txt` lists.

`UPDATE=1 pytest tests/reading/repository/test_layouts.py` rewrites these.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from eastgate.basics.diagnostics import Reporter
from eastgate.reading.manifests import Bounds
from eastgate.reading.repository import (
    ChartRender,
    Environment,
    Files,
    KustomizeBuild,
    Part,
    RepositoryOptions,
    find_environments,
)

LAYOUTS = Path(__file__).parents[2] / "repositories"


def described(environment: Environment) -> Iterator[str]:
    """Return lines that describe the parts of an environment."""
    namespace = f" in {environment.namespace}" if environment.namespace else ""
    yield f"{environment.name}: {environment.kind.value} {environment.entry}{namespace}"
    for part in environment.parts:
        yield f"  {_part(part)}"
    for gap in environment.left_out:
        yield f"  - {gap.what} ({gap.where}): {gap.why}"


def _part(part: Part) -> str:
    match part:
        case Files(paths, namespace):
            return " ".join(["files", *paths, *([f"default={namespace}"] if namespace else [])])
        case ChartRender(folder, release, namespace, files, values):
            said: dict[str, object] = {"namespace": namespace, "files": list(files), "values": list(values)}
            return f"chart {folder} as {release}{_fields(said)}"
        case KustomizeBuild():
            fields: dict[str, object] = {
                "namespace": part.namespace,
                "default": part.default_namespace,
                "variables": dict(part.variables),
                "hidden": part.hidden if part.hidden is None else list(part.hidden),
                "overlay": dict(part.overlay),
                "resources": list(part.resources),
            }
            if part.hidden is None:
                fields["hidden"] = "any"
            return f"kustomization {part.folder}{' substituted' if part.substitute else ''}{_fields(fields)}"


def _fields(said: dict[str, object]) -> str:
    return "".join(f" {key}={value}" for key, value in said.items() if value)


@pytest.mark.parametrize("layout", sorted(path.name for path in LAYOUTS.iterdir()))
def test_a_layout_has_its_environments(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(LAYOUTS / layout, checkout)
    (checkout / ".git").mkdir()
    monkeypatch.chdir(checkout)
    reporter = Reporter()
    found = find_environments(["."], Bounds.of(["."]), reporter, RepositoryOptions())
    told = [f"{found.code.id} {found.span}: {found.message}" for found in reporter]
    text = "".join(f"{line}\n" for line in (*told, *(line for each in found for line in described(each))))
    golden = LAYOUTS / layout / "environments.txt"
    if os.environ.get("UPDATE"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
    assert not reporter.errors


@pytest.mark.parametrize("layout", sorted(path.name for path in LAYOUTS.iterdir()))
def test_names_of_a_layout_are_unique(layout: str) -> None:
    folder = LAYOUTS / layout
    found = find_environments([folder], Bounds.of([folder]), Reporter(), RepositoryOptions())
    names = [environment.name for environment in found]
    assert len(set(names)) == len(names)
    assert all(os.fspath(environment) == str(folder) for environment in found)
