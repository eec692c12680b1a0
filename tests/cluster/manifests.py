"""Manifests for tests: the data, and a text in which each path has a line of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.cluster import WorldObject, interpret


@dataclass
class FakeManifest:
    """A manifest whose places have the requested path as text: an underlined text is the path itself."""

    api_version: str
    kind: str
    name: str
    data: dict[str, object]
    namespace: str | None = None
    span: Span | None = field(default=None)

    def locate(self, *path: str | int) -> Span:
        text = ".".join(str(part) for part in path)
        return Span(SourceText("test.yaml", text), 1, 1, 1, len(text) + 1)


def manifest(api_version: str, kind: str, name: str, namespace: str | None = None, **data: object) -> FakeManifest:
    return FakeManifest(api_version, kind, name, {"apiVersion": api_version, "kind": kind, **data}, namespace)


def read(api_version: str, kind: str, name: str, namespace: str | None = None, **data: object) -> WorldObject:
    """Read an object, which must have no errors."""
    reporter = Reporter()
    found = interpret(manifest(api_version, kind, name, namespace, **data), reporter)
    assert reporter.diagnostics == []
    assert found is not None
    return found


def errors(api_version: str, kind: str, name: str, namespace: str | None = None, **data: object) -> list[Diagnostic]:
    """Return the findings about an object, which must be left out."""
    reporter = Reporter()
    assert interpret(manifest(api_version, kind, name, namespace, **data), reporter) is None
    return reporter.diagnostics
