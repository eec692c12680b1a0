"""Every policy of a served kind in the repository: broken manifests, conformance tables, examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eastgate import dialects
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.reading.manifests import Document, Node, files_of, read, read_objects
from eastgate.reports.tables import read_tables
from eastgate.settings import MeshMode, Settings
from tests.reports.crds.api_server import served

ROOT = Path(__file__).parents[3]
_SETTINGS = re.compile(rb"# settings: (\w+)=(\w+)\n")


@dataclass(frozen=True)
class Sample:
    """A document, its content, and Eastgate's errors for it."""

    name: str
    manifest: dict[str, Any]
    node: Node
    mode: MeshMode
    errors: tuple[Diagnostic, ...]

    @property
    def source(self) -> tuple[str, str]:
        """Return its file and its name there."""
        metadata = self.manifest.get("metadata")
        return self.name.rpartition(":")[0], str(metadata.get("name") if isinstance(metadata, dict) else None)


@cache
def samples() -> tuple[Sample, ...]:
    """Return all samples, each once."""
    found = [*_broken(), *_tables(), *_examples()]
    return tuple({(sample.name, str(sample.manifest), sample.mode): sample for sample in found}.values())


def _broken() -> Iterator[Sample]:
    for path in sorted((ROOT / "tests/broken/manifests").glob("*/*")):
        if path.suffix not in (".yaml", ".json"):
            continue
        written = _SETTINGS.match(path.read_bytes())
        settings = Settings.from_mapping({written[1].decode(): written[2].decode()}) if written else Settings()
        yield from _samples(read([path], positioned=dialects.reads).documents, settings)


def _tables() -> Iterator[Sample]:
    tables, _ = read_tables([ROOT / "conformance"], Settings())
    for table in tables:
        if table.objects is not None:
            yield from _samples(read_objects(table.objects, positioned=dialects.reads).documents, table.settings)
        if table.manifests:
            yield from _samples(read(table.manifests, positioned=dialects.reads).documents, table.settings)


def _examples() -> Iterator[Sample]:
    files = list(files_of([ROOT / "examples"], Reporter()))
    yield from _samples(read(files, positioned=dialects.reads).documents, Settings())


def _samples(documents: list[Document], settings: Settings) -> Iterator[Sample]:
    for document in documents:
        if (document.api_version, document.kind) not in served() or document.node is None:
            continue
        reporter = Reporter()
        if dialects.is_policy(document):
            dialects.read_policy(document, settings, reporter)
        else:
            dialects.read_object(document, settings, reporter)
        manifest = document.node.plain()
        assert isinstance(manifest, dict)
        span = document.node.span
        name = f"{Path(span.file).resolve().relative_to(ROOT)}:{span.line}"
        yield Sample(name, _as_served(dict(manifest)), document.node, settings.mesh_mode, tuple(reporter.errors))


def _as_served(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest with one target as an object. In v1alpha1 a file may list its one target (ruling 5)."""
    spec = manifest.get("spec")
    if manifest["apiVersion"] != "gateway.networking.x-k8s.io/v1alpha1" or manifest["kind"] != "AuthorizationPolicy":
        return manifest
    targets = spec.get("targetRefs") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(targets, list) or len(targets) != 1:
        return manifest
    return manifest | {"spec": spec | {"targetRefs": targets[0]}}
