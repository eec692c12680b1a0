"""Kustomizations: their places, the files that they name, and the kustomizations that they include.

The files beside a `kustomization.yaml` are parts: bases, patches, values. Read as plain manifests, they would be
objects that no tool deploys, and patches would count as policies. `eastgate.reading.repository` builds them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.files import RealPaths
from eastgate.reading.manifests.node import Plain
from eastgate.reading.manifests.roots import read_nodes
from eastgate.reading.manifests.torn import template_text

FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
GROUP = "kustomize.config.k8s.io"
PARTS = ("resources", "bases", "components", "generators", "transformers", "validators")
REMOTE = regex(r"://|^git@|^git::|^[\w.-]+\.\w+[:/]|\?(?:.*&)?(?:ref|version|submodules|timeout)=")

_DEFINITIONS = regex(r"(?i)(?:[\w.-]+[-_.])?crds?(?:\.ya?ml)?|crds?[-_.][\w.-]+\.ya?ml")
_BESIDE = regex(r"(?i)(?:^|[-_.])(?:all|and|full|including|plus|polic\w*|with)(?:[-_.]|$)")


def is_of_definitions(address: str) -> bool:
    """Return whether the name of an address promises CRDs, which decide nothing.

    The last part, or the folder around it, has the word, as in `config/crd` and `cert-manager.crds.yaml`.
    """
    path = address.partition("?")[0].partition("#")[0].rstrip("/")
    *above, last = [part for part in path.split("/") if part]
    if _BESIDE.search(last) is not None or not above:
        return False
    folder = above[-2:] if above[-1] == "bases" else above[-1:]
    return _DEFINITIONS.fullmatch(last) is not None or folder[0].lower() in ("crd", "crds")


class Kustomized:
    """The path of a kustomization that `-k` names."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"Kustomized({self.path!r})"


@dataclass(slots=True, eq=False)
class Kustomization:
    """A kustomization: its folder, the name of its file, its kind, and all strings in it."""

    folder: str
    file: str
    is_component: bool = False
    parts: list[str] = field(default_factory=list)
    """The files, and folders of other kustomizations, that it includes whole."""
    words: list[str] = field(default_factory=list)
    """Every string in it that may be the name of a file."""
    template: Diagnostic | None = None
    """The finding that it must be rendered first, because it is template text."""

    def names(self) -> Iterator[str]:
        """Yield the paths that it may name."""
        for word in self.words:
            for name in {word, word.partition("=")[2]}:
                if name and "\n" not in name and "\0" not in name:
                    yield os.path.normpath(os.path.join(self.folder, name))


def is_kustomization(entries: Iterable[str]) -> str | None:
    """Return the name of the kustomization among the entries of a folder."""
    names = set(entries)
    return next((name for name in FILES if name in names), None)


def kustomization_in(folder: str) -> Kustomization | None:
    """Return the kustomization in a folder; None without one, or if a manifest of another API has its name."""
    try:
        name = is_kustomization(os.listdir(folder))
    except (OSError, ValueError):
        return None
    if name is None:
        return None
    read = read_nodes(os.path.join(folder, name))
    return kustomization_of(folder, name, read.nodes[0].plain() if read.nodes else None, read.reporter)


def kustomization_of(folder: str, name: str, value: Plain, findings: Reporter) -> Kustomization | None:
    """Return the kustomization of a folder, given its content; None if it is a manifest of another API.

    `findings` are those about unreadable content.
    """
    if not isinstance(value, dict):
        errors = findings.errors
        template = template_text(errors[0]) if errors else None
        return Kustomization(folder, name, template=template)  # rendering it reports the other errors
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(api_version, str) and api_version.partition("/")[0] != GROUP:
        return None
    listed = (entry for name in PARTS for entry in _list(value.get(name)))
    return Kustomization(
        folder,
        name,
        is_component=kind == "Component",
        parts=[entry for entry in listed if isinstance(entry, str) and "\n" not in entry],
        words=list(words_of(value)),
    )


def _list(value: Plain | None) -> list[Plain]:
    return value if isinstance(value, list) else []


def words_of(value: Plain) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from words_of(part)


def roots(kustomizations: Iterable[Kustomization]) -> list[Kustomization]:
    """Return the kustomizations that no other one includes. Of a circle, return one, which cannot be rendered."""
    real = RealPaths()
    by_path = {real.of(kustomization.folder): kustomization for kustomization in kustomizations}
    taken = {p for path_of, kustomization in by_path.items() for p in _paths(kustomization, real) if p != path_of}
    tops = [
        kustomization
        for path_of, kustomization in by_path.items()
        if not kustomization.is_component and path_of not in taken
    ]
    reached = set(_built(tops, by_path, real))
    for kustomization in by_path.values():
        if kustomization not in reached and not kustomization.is_component:
            tops.append(kustomization)
            reached.update(_built([kustomization], by_path, real))
    return tops


def _built(tops: Iterable[Kustomization], by_path: Mapping[str, Kustomization], real: RealPaths) -> list[Kustomization]:
    """Return the kustomizations, and those among the others that they include."""
    waiting, taken = list(tops), dict[str, Kustomization]()
    while waiting:
        top = waiting.pop()
        if (folder := real.of(top.folder)) not in taken:
            taken[folder] = top
            waiting += [by_path[path] for path in _paths(top, real) if path in by_path]
    return list(taken.values())


def _paths(kustomization: Kustomization, real: RealPaths) -> Iterator[str]:
    named = (os.path.join(kustomization.folder, entry) for entry in kustomization.parts if "\0" not in entry)
    return map(real.of, named)
