"""Reads decision tables as plain data, so that Istio can answer them independent of Eastgate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastgate.reading.manifests import Node, read_nodes

Manifest = dict[str, Any]


@dataclass(frozen=True)
class DecisionTable:
    """Manifests, settings, and questions. `jwks` are key sets by their issuer or URL."""

    name: str
    origin: str
    objects: list[Manifest]
    cases: list[Manifest]
    rejects: list[str] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)
    external_auth: Mapping[str, str] = field(default_factory=dict)
    jwks: Mapping[str, Any] = field(default_factory=dict)


def read_decision_tables(paths: Iterable[Path]) -> Iterator[DecisionTable]:
    """Return every DecisionTest in some files and folders."""
    for path in paths:
        for file in sorted(path.rglob("*.yaml")) if path.is_dir() else [path]:
            for node in _nodes(file):
                if node.nearest("kind").value == "DecisionTest":
                    yield _table(_plain(node), f"{file.name}:{node.span.line}", file.parent)


def _nodes(file: Path) -> Iterable[Node]:
    roots = read_nodes(str(file))
    assert not roots.reporter.errors, [f"{error.span}: {error.message}" for error in roots.reporter.errors]
    return roots.nodes


def _table(document: Manifest, origin: str, folder: Path) -> DecisionTable:
    spec = document["spec"]
    manifests = [_plain(node) for name in spec.get("manifests") or () for node in _manifests(folder / name)]
    return DecisionTable(
        name=document["metadata"]["name"],
        origin=origin,
        objects=[*manifests, *(spec.get("objects") or ())],
        cases=[_named(case, number) for number, case in enumerate(spec.get("cases") or ())],
        rejects=[rejection["policy"] for rejection in spec.get("rejects") or ()],
        settings=spec.get("settings") or {},
        external_auth=spec.get("externalAuth") or {},
        jwks={
            issuer: json.loads((folder / file).read_text("utf-8")) for issuer, file in (spec.get("jwks") or {}).items()
        },
    )


def _manifests(path: Path) -> Iterator[Node]:
    for file in sorted(path.rglob("*.y*ml")) if path.is_dir() else [path]:
        yield from _nodes(file)


def _named(case: Manifest, number: int) -> Manifest:
    return {"name": f"case {number}", **case}


def _plain(node: Node) -> Manifest:
    plain = node.plain()
    assert isinstance(plain, dict)
    return plain
