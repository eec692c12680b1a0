"""The dependencies of charts: vendored ones, folders of the repository, and missing ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from eastgate.basics.diagnostics.printable import printable
from eastgate.reading.manifests.node import Plain
from eastgate.reading.repository.closure import BuildFiles
from eastgate.reading.repository.running import Built
from eastgate.reading.repository.versions import VersionKey, satisfies, version_key
from eastgate.reading.repository.written import WrittenFile

VENDORED = "charts"

_CHART = "Chart.yaml"
_REQUIREMENTS = "requirements.yaml"
_LOCAL = "file://"
_MAX_DEPTH = 8


Values = Sequence[Mapping[str, Plain]]
"""Values of a chart; later ones win."""


class Dependencies:
    """The dependencies of one chart, and their dependencies."""

    def __init__(self, closure: BuildFiles, built: Built, charts: Sequence[str] = ()) -> None:
        """Also search for dependencies in the folders of `charts`."""
        self._closure = closure
        self._built = built
        self._charts = charts
        self._inside: list[str] = []  # charts of the repository that depend on each other
        self._moved: dict[str, str] = {}  # folders in the copy for charts that are elsewhere in the repository
        self.is_library = False

    def settle(self, root: str, values: Values) -> None:
        """Put dependencies of the repository into the copy, and remove missing ones from it."""
        chart = mapping_of(self._closure.at(os.path.join(root, _CHART)))
        self.is_library = chart.get("type") == "library"
        self._settle(root, root, values, 0)

    def real_path(self, root: str, inner: str) -> str | None:
        """Return the path of a file of the chart. The files of an alias are in the folder of its dependency."""
        path = os.path.join(root, inner)
        for place, origin in sorted(self._moved.items(), key=lambda item: -len(item[0])):
            if path.startswith(place + os.sep):
                path = origin + path[len(place) :]
                break
        return path if self._closure.at(path) is not None else None

    def _settle(self, root: str, place: str, values: Values, depth: int) -> None:
        """Settle the dependencies of the chart at `root`, and in the copy at `place`."""
        for name in (_CHART, _REQUIREMENTS):
            file = self._closure.at(os.path.join(root, name))
            chart = mapping_of(file)
            declared = chart.get("dependencies")
            if file is None or not isinstance(declared, list) or depth >= _MAX_DEPTH:
                continue
            kept: list[Plain] = []
            for index, entry in enumerate(declared):
                if not isinstance(entry, dict) or self._has(entry, root, place, values, depth):
                    kept.append(entry)
                elif not is_off(entry, values):
                    self._name(entry, file, index)
            if len(kept) < len(declared):
                changed = json.dumps({**chart, "dependencies": kept}).encode()
                self._closure.replaced[os.path.join(place, name)] = changed

    def _name(self, entry: Mapping[str, Plain], file: WrittenFile, index: int) -> None:
        line = file.nodes[0].nearest("dependencies", index).span.line
        repository = entry.get("repository")
        origin = f" of {printable(repository)}" if isinstance(repository, str) and repository else ""
        what = f"chart `{printable(str(entry.get('name')))}`{origin}"
        self._built.leave_out(what, f"{file.name}:{line}", f"it would have to be fetched into {VENDORED}/")

    def _has(self, entry: Mapping[str, Plain], root: str, place: str, values: Values, depth: int) -> bool:
        """Return whether a dependency is in the copy, or can be put there."""
        name, alias, repository = entry.get("name"), entry.get("alias"), entry.get("repository")
        if not isinstance(name, str):
            return True  # helm reports the error
        key = alias if isinstance(alias, str) and alias else name
        charts = os.path.join(root, VENDORED)
        vendored = self._vendored(charts, name)
        if vendored is not None:
            if key != name:
                self._moved[os.path.join(place, VENDORED, key)] = vendored
            inner = os.path.join(place, VENDORED, os.path.relpath(vendored, charts))
            self._settle(vendored, inner, self._scoped(vendored, values, key), depth + 1)
            return True
        if isinstance(repository, str) and repository.startswith(_LOCAL):
            folder = os.path.normpath(os.path.join(root, repository.removeprefix(_LOCAL)))
            found = folder if self._closure.holds(folder) and os.path.isfile(os.path.join(folder, _CHART)) else None
        else:
            found = self._sibling(name, entry.get("version"))
        if found is None:
            return False
        real, inner = os.path.realpath(found), os.path.join(place, VENDORED, name)
        if real == os.path.realpath(root) or real in self._inside:
            return False
        self._take_in(real, inner)
        self._moved[os.path.join(place, VENDORED, key)] = real
        self._inside.append(real)
        self._settle(real, inner, self._scoped(real, values, key), depth + 1)
        self._inside.pop()
        return True

    def _sibling(self, name: str, constraint: Plain | None) -> str | None:
        """Return the folder of the chart of the repository with a name, in a version that the dependency accepts."""
        if not isinstance(constraint, str):
            return None
        found: list[tuple[VersionKey, str]] = []
        for folder in self._charts:
            path = os.path.join(folder, _CHART)
            chart = mapping_of(self._closure.cache.get(os.path.realpath(path), path))
            version = chart.get("version")
            key = version_key(version) if isinstance(version, str) else None
            if chart.get("name") == name and key is not None and satisfies(str(version), constraint):
                found.append((key, folder))
        allowed = [each for each in found if self._closure.holds(each[1])]
        return max(allowed)[1] if allowed else None

    def _take_in(self, folder: str, place: str) -> None:
        """Put a chart of the repository where `helm dependency build` would put it."""
        self._closure.add_folder(folder, os.path.relpath(folder))
        for path, file in self._closure.all_files().items():
            if path.startswith(folder + os.sep):
                self._closure.replaced[os.path.join(place, os.path.relpath(path, folder))] = file.content

    def _vendored(self, charts: str, name: str) -> str | None:
        """Return the folder or the archive of a chart in `charts/`."""
        prefix = charts + os.sep
        for path, file in self._closure.all_files().items():
            inner = path[len(prefix) :] if path.startswith(prefix) else ""
            if os.sep not in inner and inner.endswith(".tgz") and inner.startswith(f"{name}-"):
                return path
            folder, base = os.path.split(inner)
            is_chart = base == _CHART and folder and os.sep not in folder
            if is_chart and (folder == name or mapping_of(file).get("name") == name):
                return os.path.dirname(path)
        return None

    def _scoped(self, folder: str, values: Values, key: str) -> Values:
        """Return the values of a dependency."""
        scoped = [inner for given in values if isinstance(inner := given.get(key), dict)]
        return [mapping_of(self._closure.at(os.path.join(folder, "values.yaml"))), *scoped]


def is_off(dependency: Mapping[str, Plain], values: Values) -> bool:
    """Return whether the values turn a dependency off: by its condition or, if that has no value, by its tags."""
    condition = dependency.get("condition")
    for path in condition.split(",") if isinstance(condition, str) else ():
        value = _value(path.strip().split("."), values)
        if isinstance(value, bool):
            return not value
    tags = dependency.get("tags")
    set_ = [_value(["tags", tag], values) for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    return any(value is False for value in set_) and not any(value is True for value in set_)


def _value(path: Sequence[str], values: Values) -> Plain:
    """Return the value at a path. Later values win."""
    for given in reversed(values):
        value: Plain = dict(given)
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def mapping_of(file: WrittenFile | None) -> Mapping[str, Plain]:
    """Return the content of a file, if it is a mapping."""
    value = file.nodes[0].plain() if file is not None and file.nodes else None
    return value if isinstance(value, dict) else {}
