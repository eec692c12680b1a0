"""Kustomizations: which of them a folder is about, and what they are when rendered.

The files beside a `kustomization.yaml` are parts: bases, patches, values. Read as they are they would be objects that
nobody applies, and patches would pass for policies. So `kustomize`, or the one in `kubectl`, renders them: without
plugins, without network, and with limits of time and size. What would have to be fetched is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import field

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import KUSTOMIZE_FAILED, KUSTOMIZE_MISSING, LEADS_OUT, REMOTE_BASE
from eastgate.reading.manifests.files import ANYWHERE, Bounds, RealPaths, around
from eastgate.reading.manifests.node import Plain
from eastgate.reading.manifests.roots import read_nodes

FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
GROUP = "kustomize.config.k8s.io"
PARTS = ("resources", "bases", "components", "generators", "transformers", "validators")
REMOTE = regex(r"://|^git@|^git::|^[\w.-]+\.\w+[:/]|\?(?:.*&)?(?:ref|version|submodules|timeout)=")
_MOST_FOLDERS = 1000


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
    """A kustomization: its folder, the name of its file there, its kind, and every string in it."""

    folder: str
    file: str
    is_component: bool = False
    parts: list[str] = field(default_factory=list)
    """What it takes in whole: files, and folders of other kustomizations."""
    words: list[str] = field(default_factory=list)
    """Everything in it that may be the name of a file."""

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
    """Return the kustomization in a folder; None where there is none, or a manifest of some other API has its name."""
    try:
        name = is_kustomization(os.listdir(folder))
    except (OSError, ValueError):
        return None
    if name is None:
        return None
    nodes = read_nodes(os.path.join(folder, name)).nodes
    return kustomization_of(folder, name, nodes[0].plain() if nodes else None)


def kustomization_of(folder: str, name: str, value: Plain) -> Kustomization | None:
    """Return the kustomization of a folder, given its content; None where it is a manifest of some other API."""
    if not isinstance(value, dict):
        return Kustomization(folder, name)  # whoever renders it says what is wrong with it
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
    """Return those that no other one takes in: what people build. Of a circle it is one, which cannot be rendered."""
    real = RealPaths()
    by_path = {real.of(kustomization.folder): kustomization for kustomization in kustomizations}
    taken = {p for path_of, kustomization in by_path.items() for p in _paths(kustomization, real) if p != path_of}
    tops = [
        kustomization
        for path_of, kustomization in by_path.items()
        if not kustomization.is_component and path_of not in taken
    ]
    reached = set(built(tops, by_path.values(), real))
    for kustomization in by_path.values():
        if kustomization not in reached and not kustomization.is_component:
            tops.append(kustomization)
            reached.update(built([kustomization], by_path.values(), real))
    return tops


def built(
    tops: Iterable[Kustomization], kustomizations: Iterable[Kustomization], paths: RealPaths | None = None
) -> list[Kustomization]:
    """Return what is rendered with some kustomizations: themselves, and those among others that they take in."""
    real = paths or RealPaths()
    by_path = {real.of(kustomization.folder): kustomization for kustomization in kustomizations}
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


def rivals(tops: Iterable[Kustomization]) -> list[Kustomization]:
    """Return those that build on the same resources, as overlays for several places do: only one can be meant."""
    takers: dict[str, list[Kustomization]] = {}
    for top in tops:
        for path in _resources_of(top):
            takers.setdefault(path, []).append(top)
    shared = {id(rival) for several in takers.values() if len(several) > 1 for rival in several}
    return [top for top in tops if id(top) in shared]


def _resources_of(top: Kustomization) -> set[str]:
    """Return the files and folders that a kustomization takes resources from, by way of others too."""
    waiting, taken = [top], set[str]()
    while waiting and len(taken) < _MOST_FOLDERS:
        kustomization = waiting.pop()
        for entry in kustomization.parts:
            path = os.path.realpath(os.path.join(kustomization.folder, entry))
            inner = kustomization_in(path) if path not in taken and os.path.isdir(path) else None
            if os.path.exists(path) and not (inner is not None and inner.is_component):
                taken.add(path)
            if inner is not None and not inner.is_component:
                waiting.append(inner)
    return taken


def parts(folder: str, follow: bool, reporter: Reporter) -> list[str] | None:
    """Return the folders of a kustomization and of all that it takes in; None where something must not be read.

    Whatever would have to be fetched is reported, and what leads out of the repository that the kustomization is in.
    """
    bounds: Bounds | None = None
    waiting, good = [folder], True
    seen: dict[str, str] = {}
    while waiting:
        current = waiting.pop()
        real = os.path.realpath(current)
        if real in seen:
            continue
        seen[real] = current
        if len(seen) > _MOST_FOLDERS:
            reporter.report(KUSTOMIZE_FAILED, f"`{printable(folder)}` takes in more than {_MOST_FOLDERS} folders")
            return None
        kustomization = kustomization_in(current)
        if kustomization is None:
            continue
        file = os.path.join(current, kustomization.file)
        if bounds is None:
            bounds = ANYWHERE if follow else around(file)
        for entry in kustomization.parts:
            path = os.path.join(current, entry)
            if not os.path.lexists(path):
                if REMOTE.search(entry):
                    good = False
                    _report_remote(file, entry, folder, reporter)
            elif not bounds.hold(path):
                good = False
                message = f"`{printable(file)}` names `{printable(entry)}`, which leads out of what is read"
                reporter.report(LEADS_OUT, message, help="read it all the same with --follow")
            elif os.path.isdir(path):
                waiting.append(os.path.normpath(path))
    return list(seen.values()) if good else None


def _report_remote(file: str, entry: str, folder: str, reporter: Reporter) -> None:
    message = f"`{printable(file)}` names `{printable(entry)}`, which is not fetched"
    help_ = f"render it yourself: kustomize build {printable(folder)} | eastgate ... -f -"
    reporter.report(REMOTE_BASE, message, help=help_)


def report_missing(folders: list[str], reporter: Reporter) -> None:
    """Say once that nothing here can render, and what to run."""
    first, *more = folders
    others = f" and {len(more)} more" if more else ""
    message = f"`{printable(first)}`{others}: a kustomization, and neither kustomize nor kubectl is on the PATH"
    help_ = f"run, where one of them is: kustomize build {printable(first)} | eastgate ... -f -"
    reporter.report(KUSTOMIZE_MISSING, message, help=help_)
