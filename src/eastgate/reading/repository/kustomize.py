"""Builds kustomizations, as Flux does: fields of a Flux `Kustomization` are merged into the kustomization of the
folder.

Parts that cannot be built are removed from a copy and named: remote parts, parts out of bounds, and charts that cannot
be rendered.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import field, replace
from functools import partial

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.reading.manifests.kustomizations import FILES, GROUP, PARTS, REMOTE, is_of_definitions, words_of
from eastgate.reading.manifests.node import Node, Plain
from eastgate.reading.manifests.objects import Matters
from eastgate.reading.manifests.rendering import ProgramOutput
from eastgate.reading.repository.charts import InflatedChart, inflate
from eastgate.reading.repository.closure import BuildFiles, BuildTooLargeError
from eastgate.reading.repository.deciding import RESOURCES, IncludedFile, count_unused, short_definitions
from eastgate.reading.repository.declarations import texts
from eastgate.reading.repository.generators import without_missing_sources
from eastgate.reading.repository.kustomized import Origins, built_text
from eastgate.reading.repository.model import KustomizeBuild
from eastgate.reading.repository.rewriting import allow_missing_targets, merged, patch_files, remote_files
from eastgate.reading.repository.running import BuildContext, Built, in_copy
from eastgate.reading.repository.written import DEFINITION, EXTENSIONS, WrittenFile

_MAX_FOLDERS = 1000
_PLUGIN_FIELDS = ("generators", "transformers", "validators")  # fields of plugins that also name files
_NOT_FETCHED = "it would have to be fetched"
ANY_FOLDER = "--load-restrictor=LoadRestrictionsNone"
_ORIGINS: list[Plain] = ["originAnnotations"]


@dataclass(slots=True)
class BuildFolder:
    """A kustomization in a build: its folder, its file, and its content."""

    path: str
    shown: str
    file: WrittenFile
    file_path: str
    value: dict[str, Plain]
    inner: list[str] = field(default_factory=list)
    """The real paths of the folders that it includes."""
    lacks: bool = False
    """Whether a part of it was removed."""

    @property
    def node(self) -> Node | None:
        return self.file.nodes[0] if self.file.nodes else None

    def where(self, *path: str | int) -> str:
        """Return file and line of a value."""
        node = self.node
        line = node.nearest(*path).span.line if node is not None else 1
        return f"{self.file.name}:{line}"


class KustomizationBuild:
    """One kustomization and all that it includes. It is prepared, run, and finished.

    If `takes` accepts none of its objects, it is not run. CRDs are built whole only if `takes` accepts them.
    """

    def __init__(self, part: KustomizeBuild, context: BuildContext, takes: Matters | None = None) -> None:
        self.part = part
        self.built = Built()
        self.patches: tuple[WrittenFile, ...] = ()
        self.root = os.path.realpath(part.folder)
        self.closure = BuildFiles(context.paths, context.files)
        self.inflated: dict[str, InflatedChart] = {}
        self.charts: list[str] = []
        self.taken: list[IncludedFile] = []
        self.where = part.folder
        self.is_strict = False  # whether it may name files outside of the copy
        self._context = context
        self._takes = takes
        self.folders: dict[str, BuildFolder] = {}
        self._absent: list[str] = []
        self.arguments: list[str] = []
        self.tries: list[tuple[BuildFiles, str]] = []  # the files to build, and their keys, in the order of tries
        self._output: ProgramOutput | None = None

    @property
    def values(self) -> list[dict[str, Plain]]:
        """Return the contents of its kustomizations, with the fields that Flux adds."""
        return [folder.value for folder in self.folders.values()]

    @property
    def is_understood(self) -> bool:
        """Return whether each of its folders has a readable kustomization."""
        return self.root in self.folders and len(self.folders) == len(self.closure.folders)

    def prepare(self) -> bool:
        """Collect the input. Return whether a program must run; if not, the build can be finished."""
        name = f"kustomization `{printable(self.part.folder)}`"
        if self._context.kustomize is None:
            self.built.leave_out(name, self.part.folder, "neither kustomize nor kubectl is on the PATH")
            return False
        try:
            if not self.collect():
                return False
        except BuildTooLargeError:
            self.built.leave_out(name, self.part.folder, "it takes in more files than any build needs")
            return False
        if self._takes is not None and self.is_understood and not self.inflated:
            count = count_unused(self.values, self.closure, self.taken, self._takes)
            if count is not None:
                self.built.unused = count
                return False
        root = self.closure.root()
        self.is_strict |= any(os.path.commonpath([root, path]) != root for path in self._absent)
        self.arguments = [*([] if self.is_strict else [ANY_FOLDER]), "--", in_copy(self.root, self.closure)]
        for closure in self._to_build():
            self.tries.append((closure, self._context.key(closure, self.command, self.arguments)))
        return not self._take_cached()

    def run(self) -> None:
        """Run the program. The copy has no schemas of CRDs, unless the program fails without them."""
        while not self._take_cached():
            closure, key = self.tries[0]
            output = self._context.run(closure, self.command, self.arguments)
            self._context.keep(key, output)
            self._take(output)

    def _take_cached(self) -> bool:
        """Take the result from the cache. Return whether it is final."""
        while self.tries:
            output = self._context.cached(self.tries[0][1])
            if output is None:
                return False
            self._take(output)
        return True

    def _take(self, output: ProgramOutput) -> None:
        self._output = output
        self.tries = self.tries[1:] if output.problem is not None else []

    def finish(self) -> Built:
        """Return the result, after the run if there was one."""
        output, folder = self._output, self.part.folder
        if output is None:
            return self.built
        if output.problem is not None:
            name = printable(folder)
            program = " ".join((os.path.basename(self.command[0]), *self.command[1:], name))
            why = f"`{program}` {output.problem}"
            self.built.leave_out(f"kustomization `{name}`", self.where, why, reason=f"the build {output.problem}")
            return self.built
        content = output.content.decode("utf-8", "replace")
        origins = Origins(self.closure, self.root, self.patches, self.inflated)
        self.built.text = built_text(f"<kustomize build {folder}>", content, origins, self.part)
        return self.built

    @property
    def command(self) -> tuple[str, ...]:
        """Return the command that builds it."""
        return self._context.kustomize or ()

    def _to_build(self) -> Iterator[BuildFiles]:
        """Yield the files to build, in the order of tries."""
        is_needed = self._takes is None or self._takes(f"{EXTENSIONS}/v1", DEFINITION)
        if not is_needed and (short := short_definitions(self.values, self.closure)):
            yield replace(self.closure, replaced=self.closure.replaced | short)
        yield self.closure

    def collect(self) -> bool:
        """Collect the files. Return False, and record the omitted part, if there is no kustomization."""
        if not self.closure.holds(self.root):
            why = "it leads out of the given folder; to read it, use --follow"
            self.built.leave_out(f"kustomization `{printable(self.part.folder)}`", self.part.folder, why)
            return False
        self._collect_all([(self.part.folder, self.root)])
        top = self.folders.get(self.root) or self._generated()
        if top is None:
            if not self._has_file(self.root):
                why = "there is no kustomization in it"
                self.built.leave_out(f"kustomization `{printable(self.part.folder)}`", self.part.folder, why)
                return False
            return True  # the build reports the error
        self.where = top.where()
        self._overlay(top)
        self._rewrite()
        return True

    def _has_file(self, folder: str) -> bool:
        return any(os.path.join(folder, name) in self.closure.files for name in FILES)

    def _collect_all(self, waiting: list[tuple[str, str]]) -> None:
        while waiting:
            shown, path = waiting.pop()
            real = self.closure.resolve(path)
            if real is None or real in self.closure.folders:
                continue
            self.closure.folders.add(real)
            if len(self.closure.folders) > _MAX_FOLDERS:
                raise BuildTooLargeError
            folder = self._read(shown, real)
            if folder is not None:
                self.folders[real] = folder
                waiting += self._collect(folder)

    def _read(self, shown: str, real: str) -> BuildFolder | None:
        """Read a kustomization; None if there is none, or if it is invalid."""
        found: list[tuple[str, WrittenFile]] = []
        for name in FILES:
            path = os.path.join(real, name)
            if os.path.lexists(path):
                file = self.closure.add_file(path, os.path.normpath(os.path.join(shown, name)))
                found += [(self.closure.paths.real(path), file)] if file is not None else []
        if len(found) != 1 or len(found[0][1].values) != 1:
            return None
        value = deepcopy(found[0][1].values[0])
        if not isinstance(value, dict):
            return None
        api_version = value.get("apiVersion")
        if isinstance(api_version, str) and api_version.partition("/")[0] != GROUP:
            return None
        return BuildFolder(real, shown, found[0][1], found[0][0], value)

    def _collect(self, folder: BuildFolder) -> list[tuple[str, str]]:
        """Collect the files that a kustomization names. Return the folders."""
        waiting = self._collect_parts(folder)
        for path, name in remote_files(folder.value):
            self.built.leave_out(
                f"`{printable(name)}` of {path[0]}", folder.where(*path), "it would have to be fetched"
            )
            folder.lacks = True
        self._take_charts(folder)
        for source in without_missing_sources(folder.value, folder.path):
            what = f"`{printable(source.name)}` of {source.generator}"
            self.built.leave_out(what, folder.where(*source.path), "there is no such file")
            folder.lacks = True
        words = set(words_of(folder.value))
        for name in _PLUGIN_FIELDS:
            for entry in texts(folder.value.get(name)):
                file = self.closure.files.get(os.path.realpath(os.path.join(folder.path, entry)))
                for value in file.values if file is not None else ():
                    words.update(words_of(value))
        for word in sorted(words | {word.partition("=")[2] for word in words}):
            self._collect_word(folder, word)
        return waiting

    def _collect_word(self, folder: BuildFolder, word: str) -> None:
        """Add the file that a word may name."""
        if not word or "\n" in word or "\0" in word:
            return
        path = os.path.join(folder.path, word)
        if os.path.isabs(word):
            self.is_strict |= os.path.lexists(word)
        elif os.pardir in word and not os.path.lexists(path):
            self._absent.append(os.path.normpath(path))
        elif os.path.isfile(path):
            shown = os.path.normpath(os.path.join(folder.shown, word))
            if self.closure.add_file(path, shown) is None:
                self.is_strict = True

    def _collect_parts(self, folder: BuildFolder) -> list[tuple[str, str]]:
        waiting: list[tuple[str, str]] = []
        for name in PARTS:
            entries = folder.value.get(name)
            if not isinstance(entries, list):
                continue
            kept: list[Plain] = []
            for index, entry in enumerate(entries):
                if not isinstance(entry, str) or "\n" in entry or "\0" in entry:
                    kept.append(entry)
                    continue
                path = os.path.join(folder.path, entry)
                why = self._why_not(entry, path)
                if why is not None:
                    what = f"`{printable(entry)}` of {name}"
                    can_decide = why != _NOT_FETCHED or name not in RESOURCES or not is_of_definitions(entry)
                    self.built.leave_out(what, folder.where(name, index), why, can_decide=can_decide)
                    folder.lacks = True
                    continue
                kept.append(entry)
                self.closure.goes_up(folder.path, entry)
                shown = os.path.normpath(os.path.join(folder.shown, entry))
                if os.path.isdir(path):
                    waiting.append((shown, path))
                    folder.inner.append(self.closure.paths.real(path))
                elif os.path.isfile(path) and (file := self.closure.add_file(path, shown)) is not None:
                    self.taken.append(IncludedFile(file, name, folder.path))
            folder.value[name] = kept
        return waiting

    def _why_not(self, entry: str, path: str) -> str | None:
        """Return the reason why a part cannot be built; None if the program can try."""
        if not os.path.exists(path):
            return _NOT_FETCHED if REMOTE.search(entry) else "there is no such file or folder"
        if os.path.isabs(entry):
            return "it is an absolute path"
        if not self.closure.holds(path):
            return "it leads out of the given folder; to read it, use --follow"
        if os.path.isdir(path) and not any(os.path.exists(os.path.join(path, name)) for name in FILES):
            return "it is a folder without a kustomization"
        return None

    def _take_charts(self, folder: BuildFolder) -> None:
        """Render the charts of a kustomization, and add their output to its resources."""
        if folder.value.pop("helmChartInflationGenerator", None) is not None:
            where = folder.where("helmChartInflationGenerator")
            self.built.leave_out("helmChartInflationGenerator", where, "kustomize itself no longer knows it")
            folder.lacks = True
        charts, globals_ = folder.value.pop("helmCharts", None), folder.value.pop("helmGlobals", None)
        for index, entry in enumerate(charts if isinstance(charts, list) else ()):
            place = os.path.join(folder.path, f".eastgate-helm-{index}")
            where = folder.where("helmCharts", index)
            home = globals_.get("chartHome") if isinstance(globals_, dict) else None
            self.charts.append(os.path.join(folder.shown, home if isinstance(home, str) else "charts"))
            chart = inflate(entry, home, (folder.path, folder.shown), place, where, self._context, self.built)
            if chart is None:
                folder.lacks = True
                continue
            resources = folder.value.get("resources")
            names = resources if isinstance(resources, list) else []
            folder.value["resources"] = names
            for source, content in chart.files.items():
                path = os.path.join(place, source)
                self.closure.replaced[path] = content
                self.inflated[path] = chart
                names.append(os.path.relpath(path, folder.path))

    def _generated(self) -> BuildFolder | None:
        """Return a kustomization of the part's resources, as Flux generates one for a folder without one."""
        if not self.part.resources:
            return None
        names: list[Plain] = []
        waiting: list[tuple[str, str]] = []
        for path in self.part.resources:
            if os.path.isdir(path):
                waiting.append((path, path))
            elif (file := self.closure.add_file(path, path)) is not None:
                self.taken.append(IncludedFile(file, "resources", self.root))
            else:
                self.built.leave_out(
                    f"`{printable(path)}`", path, "it cannot be read, or leads out of the given folder"
                )
                continue
            names.append(os.path.relpath(os.path.realpath(path), self.root))
        self._collect_all(waiting)
        value: dict[str, Plain] = {"resources": names}
        path = os.path.join(self.root, FILES[0])
        folder = BuildFolder(self.root, self.part.folder, WrittenFile(self.part.folder, b""), path, value)
        folder.inner = [os.path.realpath(path) for _, path in waiting]
        self.folders[self.root] = folder
        return folder

    def _overlay(self, top: BuildFolder) -> None:
        """Merge the fields that Flux adds into the kustomization of the folder."""
        overlay = dict(self.part.overlay)
        if self.part.namespace is not None:
            overlay["namespace"] = self.part.namespace
        before = set(self.folders)
        top.value = merged(top.value, overlay)
        if "components" in overlay:
            more = BuildFolder(top.path, top.shown, top.file, top.file_path, {"components": overlay["components"]})
            self._collect_all(self._collect_parts(more))
            kept = texts(more.value.get("components"))
            dropped = set(texts(overlay["components"])) - set(kept)
            top.value["components"] = [name for name in texts(top.value["components"]) if name not in dropped]
            top.inner += [path for path in self.folders if path not in before]
            top.lacks |= more.lacks

    def _rewrite(self) -> None:
        """Write the changed kustomizations into the copy."""
        self.patches = tuple(
            file
            for folder in self.folders.values()
            for name in patch_files(folder.value)
            if (file := self.closure.files.get(os.path.realpath(os.path.join(folder.path, name)))) is not None
        )
        top = self.folders[self.root]
        lacking = {path for path, folder in self.folders.items() if folder.lacks}
        while more := {p for p, folder in self.folders.items() if p not in lacking and lacking & {*folder.inner}}:
            lacking |= more
        for path in lacking:
            folder = self.folders[path]
            folder.value = allow_missing_targets(folder.value, partial(self._file_of, path))
            folder.value.setdefault("buildMetadata", _ORIGINS)  # an empty list would be an error
        top.value["buildMetadata"] = _ORIGINS
        for folder in self.folders.values():
            if folder is top or folder.path in lacking or [folder.value] != folder.file.values:
                self.closure.replaced[folder.file_path] = json.dumps(folder.value).encode()

    def _file_of(self, folder: str, name: str) -> WrittenFile | None:
        return self.closure.files.get(os.path.realpath(os.path.join(folder, name)))
