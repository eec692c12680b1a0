"""The protocol of a manifest, as the world needs it: plain data, names, and spans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from eastgate.basics.diagnostics.spans import Span


class Manifest(Protocol):
    """One Kubernetes object of a file, or of the API server (then without places)."""

    @property
    def api_version(self) -> str:
        """Return its `apiVersion`."""
        ...

    @property
    def kind(self) -> str:
        """Return its `kind`."""
        ...

    @property
    def name(self) -> str:
        """Return its `metadata.name`."""
        ...

    @property
    def namespace(self) -> str | None:
        """Return its `metadata.namespace`, None where it has none."""
        ...

    @property
    def data(self) -> Mapping[str, object]:
        """Return the whole object as JSON data: dicts, lists, strings, numbers, booleans, None."""
        ...

    @property
    def span(self) -> Span | None:
        """Return the span of the whole object."""
        ...

    def locate(self, *path: str | int) -> Span | None:
        """Return the span of the value under a path of keys and list positions."""
        ...
