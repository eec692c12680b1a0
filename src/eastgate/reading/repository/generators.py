"""Generators of ConfigMaps and Secrets, without the files that a checkout does not have.

Typical are `.env` files that Git ignores. kustomize builds nothing if one is missing. Without the missing source, all
objects are built, and only the content of this one is incomplete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.node import Plain

_GENERATORS = ("configMapGenerator", "secretGenerator")
_LISTS = ("files", "envs")


@dataclass(frozen=True, slots=True)
class MissingSource:
    """A missing source, and the place where a kustomization names it."""

    name: str
    generator: str
    path: tuple[str | int, ...]


def without_missing_sources(kustomization: dict[str, Plain], folder: str) -> Iterator[MissingSource]:
    """Remove the missing sources from a kustomization, and yield them."""
    for generator in _GENERATORS:
        entries = kustomization.get(generator)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict):
                for source, path in list(_take(entry, folder)):
                    yield MissingSource(source, generator, (generator, index, *path))


def _take(entry: dict[str, Plain], folder: str) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    for name in _LISTS:
        sources = entry.get(name)
        if not isinstance(sources, list):
            continue
        kept: list[Plain] = []
        for index, source in enumerate(sources):
            if isinstance(source, str) and _is_missing(source, name, folder):
                yield source, (name, index)
            else:
                kept.append(source)
        entry[name] = kept
    source = entry.get("env")
    if isinstance(source, str) and _is_missing(source, "env", folder):
        del entry["env"]
        yield source, ("env",)


def _is_missing(source: str, field: str, folder: str) -> bool:
    """Return whether a source is not in the checkout. An entry of `files` may have the form `key=path`."""
    _, equals, path = source.partition("=")
    name = path if equals and field == "files" else source
    if not name or "\n" in name or "\0" in name:
        return False  # kustomize reports the error
    return not os.path.exists(os.path.join(folder, name))
