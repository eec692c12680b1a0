"""Stand-ins for kustomize and helm that run in this process. They do the part of the work that quick tests need."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from eastgate.reading.manifests.rendering import ProgramOutput
from eastgate.reading.repository import running

_ORIGIN = "config.kubernetes.io/origin"


def stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """Replace programs by the stand-ins. Return the list of those that ran."""
    ran: list[str] = []

    def run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> ProgramOutput:
        del variables
        name = os.path.basename(command[0])
        ran.append(name)
        given = next(word for word in command if os.path.isdir(word))
        texts = _kustomize(Path(given)) if name == "kustomize" else _helm(Path(given))
        try:
            return ProgramOutput("".join(texts).encode())
        except (OSError, AttributeError, TypeError, yaml.YAMLError) as error:
            return ProgramOutput(problem=f"fails: {error}")

    for name in ("kustomize", "helm"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(running, "run", run)
    return ran


def _kustomize(folder: Path) -> Iterator[str]:
    for number, (origin, data) in enumerate(_objects(folder, folder)):
        metadata = data["metadata"]
        assert isinstance(metadata, dict)
        metadata["annotations"] = {**metadata.get("annotations", {}), _ORIGIN: _Literal(f"path: {origin}\n")}
        yield ("---\n" if number else "") + yaml.dump(data, Dumper=_Dumper)


class _Literal(str):
    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(
    _Literal, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")
)


def _objects(folder: Path, top: Path) -> Iterator[tuple[str, dict[str, object]]]:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for name in kustomization.get("resources") or ():
        path = folder / name
        if path.is_dir():
            yield from _prefixed(_objects(path, top), kustomization)
            continue
        objects = ((os.path.relpath(path, top), data) for data in yaml.safe_load_all(path.read_text()) if data)
        yield from _prefixed(objects, kustomization)


def _prefixed(
    objects: Iterator[tuple[str, dict[str, object]]], kustomization: dict[str, str]
) -> Iterator[tuple[str, dict[str, object]]]:
    for origin, data in objects:
        metadata = data["metadata"]
        assert isinstance(metadata, dict)
        metadata["name"] = kustomization.get("namePrefix", "") + metadata["name"]
        if "namespace" in kustomization:
            metadata["namespace"] = kustomization["namespace"]
        yield origin, data


def _helm(chart: Path) -> Iterator[str]:
    """Yield templates with only `{{ x }}` filled in."""
    for path in sorted(chart.rglob("templates/*.yaml")):
        for text in path.read_text().split("---\n"):
            if text.strip():
                source = f"{chart.name}/{path.relative_to(chart)}"
                yield f"---\n# Source: {source}\n{text.replace('{{ x }}', 'filled')}"
