"""Plain folders are environments of their own if their copies of an object differ in a field that decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.authority.environments import deployments
from eastgate.reading.manifests import Bounds

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: {note: NOTE}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: LABEL}}
  template:
    metadata: {labels: {app: LABEL}}
    spec: {containers: [{name: web, image: IMAGE}]}
"""
VALUES = {"NOTE": "a", "REPLICAS": "1", "LABEL": "web", "IMAGE": "web:1"}
MONITOR = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata:\n  name: web\nspec: {port: PORT}\n"


def _deployment(**changes: str) -> str:
    text = DEPLOYMENT
    for name, value in {**VALUES, **changes}.items():
        text = text.replace(name, value)
    return text


def _names(tmp_path: Path, first: str, second: str) -> list[str | None]:
    for folder, text in (("one", first), ("two", second)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "web.yaml").write_text(text)
    return [each.name for each in deployments([tmp_path], Bounds.of([tmp_path]))]


@pytest.mark.parametrize(
    "changes", [{"IMAGE": "web:2"}, {"REPLICAS": "3"}, {"NOTE": "b"}, {"IMAGE": "a", "NOTE": "c"}], ids=str
)
def test_copies_that_differ_in_nothing_that_decides_are_together(changes: dict[str, str], tmp_path: Path) -> None:
    assert _names(tmp_path, _deployment(), _deployment(**changes)) == [None]


def test_copies_of_a_kind_that_decides_nothing_are_one_environment(tmp_path: Path) -> None:
    first, second = (f"{_deployment()}---\n{MONITOR.replace('PORT', port)}" for port in ("a", "b"))
    assert _names(tmp_path, first, second) == [None]


def test_copies_that_differ_in_what_decides_are_apart(tmp_path: Path) -> None:
    assert _names(tmp_path, _deployment(), _deployment(LABEL="api")) == ["one", "two"]


@pytest.mark.parametrize("first", ["web", "[api"])
def test_a_copy_that_cannot_be_read_is_apart(first: str, tmp_path: Path) -> None:
    assert _names(tmp_path, _deployment(LABEL=first), _deployment(LABEL="[web")) == ["one", "two"]
