"""Renders Helm charts: the templates of a release become manifests.

Tests, and jobs of hooks, are not part of a release. Other objects of hooks stay in the cluster. A library chart
installs nothing. Dependencies are not fetched: one that is neither in `charts/` nor a chart of the repository is
removed from a copy of the chart and named, unless the values turn it off.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from itertools import pairwise

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.node import Plain
from eastgate.reading.manifests.rendering import ProgramOutput
from eastgate.reading.manifests.yaml.parser import chunks
from eastgate.reading.manifests.yaml.plain import read_plain_yaml
from eastgate.reading.repository.asking import asked_apis, cluster_templates
from eastgate.reading.repository.closure import BuildFiles, BuildTooLargeError
from eastgate.reading.repository.declarations import mapping, parsed, text_of
from eastgate.reading.repository.dependencies import Dependencies, mapping_of
from eastgate.reading.repository.model import ChartRender, RepositoryOptions
from eastgate.reading.repository.origins import BuiltDocument, BuiltText
from eastgate.reading.repository.running import BuildContext, Built, in_copy
from eastgate.reading.repository.written import WrittenFile

# Duplicate keys in a template. Helm takes the last one, but kubectl refuses the manifest.


_MAX_LINES = 100_000  # of a document that is examined


def last_key_wins(text: str) -> str:
    """Return a document in which duplicate keys are comments, except the last of each.

    The line numbers do not change.
    """
    if read_plain_yaml(text, 0) is not None or text.count("\n") > _MAX_LINES:
        return text
    import yaml  # imported here because few templates have duplicate keys

    try:
        root = yaml.compose(text, yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return text
    lines = text.splitlines(keepends=True)
    for first, last, column in _superseded(root):
        begins = lines[first][:column]
        lines[first] = f"{begins}# {lines[first][column:]}"  # the dash of a list stays
        for number in range(first + 1, last):
            lines[number] = f"#{lines[number]}"
    return "".join(lines)


def _superseded(root: object) -> Iterator[tuple[int, int, int]]:
    """Yield the lines and the column of entries that a later one replaces, if they have lines of their own."""
    import yaml

    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue  # an alias
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode) and not node.flow_style:
            waiting += [value for _, value in node.value]
            names = [key.value for key, _ in node.value]
            for index, ((key, _), (after, _)) in enumerate(pairwise(node.value)):
                if isinstance(key, yaml.ScalarNode) and names[index] in names[index + 1 :]:
                    yield key.start_mark.line, after.start_mark.line, key.start_mark.column


CHART = "Chart.yaml"
NO_HELM = "there is no helm program; give one with --helm PATH"

_SOURCE = regex(r"(?m)^# Source: (.+)$")
_MAX_APIS = 50
_HOOK = "helm.sh/hook"
_LASTING = {"pre-install", "post-install", "pre-upgrade", "post-upgrade", "crd-install"}
"""Events of hooks whose objects stay until a later release replaces them."""
_TEMPLATES = "templates"
_TEST_HOOK = regex(rb"""helm\.sh/hook["']?:\s*["']?test""")
_VALUES = ".eastgate-values"
_FLAGS = ("--skip-tests", "--include-crds")
_FOLDERS = {
    name: name.lower()
    for name in (
        "HELM_CACHE_HOME",
        "HELM_CONFIG_HOME",
        "HELM_DATA_HOME",
        "HELM_PLUGINS",
        "HELM_REGISTRY_CONFIG",
        "HELM_REPOSITORY_CACHE",
        "HELM_REPOSITORY_CONFIG",
    )
}


def build_chart(part: ChartRender, context: BuildContext, options: RepositoryOptions) -> Built:
    """Build a part of an environment."""
    built = Built()
    release = Release(part, context, built, options)
    try:
        text = release.text()
    except BuildTooLargeError:
        release.leave_out("it has more files than any chart needs")
        text = None
    if text is not None:
        built.text = text
    return built


def files_of_chart(part: ChartRender, context: BuildContext, options: RepositoryOptions) -> list[str]:
    """Return the input files of a chart."""
    return Release(part, context, Built(), options).files()


@dataclass(frozen=True, slots=True)
class _Rendered:
    """A document of a release: its text, and helm's name for its template."""

    text: str
    source: str


class Release:
    """A chart with its values."""

    def __init__(self, part: ChartRender, context: BuildContext, built: Built, options: RepositoryOptions) -> None:
        self._part = part
        self._context = context
        self._built = built
        self._options = options
        self._root = os.path.realpath(part.folder)
        self._closure = BuildFiles(context.paths, context.files)
        self._dependencies = Dependencies(self._closure, built, context.charts)
        self._where = os.path.join(part.folder, CHART)

    def leave_out(self, why: str) -> None:
        """Leave out the whole chart."""
        self._built.leave_out(f"chart `{printable(self._part.folder)}`", self._where, why)

    def files(self) -> list[str]:
        """Return the input files."""
        with contextlib.suppress(BuildTooLargeError):
            self._collect()
        return [file.name for file in self._closure.all_files().values()]

    def text(self) -> BuiltText | None:
        """Return the manifests of the release; None, with the omitted parts, if there are none."""
        documents = self.documents()
        if documents is None:
            return None
        counts: dict[str, int] = {}
        places: list[BuiltDocument] = []
        line = 1
        for document in documents:
            index = counts.get(document.source, 0)
            counts[document.source] = index + 1
            name, file = self.written(document.source)
            is_template = _TEMPLATES in document.source.split("/")
            places.append(BuiltDocument(line, name, file, is_template=is_template, index=index))
            line += len(document.text.splitlines())
        name = f"<helm template {self._part.folder}>"
        return BuiltText(name, "".join(document.text for document in documents), places)

    def documents(self) -> list[_Rendered] | None:
        """Return the documents of the release."""
        if not self._collect():
            return None
        if self._dependencies.is_library:
            return None
        if self._context.helm is None:
            self.leave_out(NO_HELM)
            return list(self._definitions())
        output = self._run(self._context.helm)
        if output.problem is not None:
            self.leave_out(f"`helm template {printable(self._part.folder)}` {output.problem}")
            return None
        for template in cluster_templates(self._templates):
            name = self._name_of(template.path)
            why = f"`{template.asks}` depends on what is in the cluster"
            self._built.leave_out(f"policies of `{printable(name)}`", name, why)
        return [each for each in _split(output.content.decode("utf-8", "replace")) if not _is_gone(each.text)]

    def _name_of(self, path: str) -> str:
        file = self._closure.at(path)
        return file.name if file is not None else path

    def written(self, source: str) -> tuple[str, WrittenFile | None]:
        """Return the name of a template as users know it, with its file if it is one."""
        inner = source.partition("/")[2]
        real = self._dependencies.real_path(self._root, inner)
        file = self._closure.at(real) if real is not None else None
        return file.name if file is not None else os.path.join(self._part.folder, inner), file

    def _collect(self) -> bool:
        if not self._closure.holds(self._root):
            self.leave_out("it leads out of the given folder; to read it, use --follow")
            return False
        if not os.path.isfile(os.path.join(self._root, CHART)):
            self.leave_out("there is no chart in it")
            return False
        self._closure.folders.add(self._root)
        outside = self._closure.add_folder(self._root, self._part.folder)
        for path in outside:
            self._built.leave_out(f"`{printable(path)}`", path, "it leads out of the given folder")
        self._dependencies.settle(self._root, list(self._values()))
        for path, file in self._closure.files.items():
            if _is_beside(path, file.content):
                self._closure.replaced[path] = b""
        return True

    def _values(self) -> Iterator[Mapping[str, Plain]]:
        """Put the values into the copy, in order of precedence, and yield them."""
        default = self._closure.at(os.path.join(self._root, "values.yaml"))
        yield mapping_of(default)
        last = self._options.helm_values
        order: list[str | Mapping[str, Plain]] = [*self._part.value_files, *self._part.values, *last]
        for number, given in enumerate(order):
            if isinstance(given, str):
                file = self._file(given, is_given=number >= len(order) - len(last))
                if file is None:
                    continue
                content = file.content
                yield mapping_of(file)
            else:
                content = json.dumps(given).encode()
                yield given
            self._closure.replaced[os.path.join(self._root, f"{_VALUES}-{number}.yaml")] = content

    def _file(self, path: str, *, is_given: bool) -> WrittenFile | None:
        """Return a file with values. A file that a user names may be anywhere."""
        files = self._context.files
        file = files.get(os.path.realpath(path), path) if is_given else self._closure.add_file(path, path)
        if file is None:
            chart = printable(self._part.folder)
            why = "there is no such file" if not os.path.lexists(path) else "it cannot be read, or leads out"
            self._built.leave_out(f"values `{printable(path)}` of chart `{chart}`", self._where, why)
        return file

    def _run(self, helm: str) -> ProgramOutput:
        closure, namespace = self._closure, self._part.namespace or "default"
        values = sorted(path for path in closure.replaced if os.path.basename(path).startswith(_VALUES))
        values.sort(key=lambda path: int(path.rpartition("-")[2].removesuffix(".yaml")))
        words = [self._part.release, in_copy(self._root, closure), f"--namespace={namespace}", *_FLAGS]
        for path in values:
            words += ["--values", in_copy(path, closure)]
        words += [f"--api-versions={version}" for version in asked_apis(self._templates)[:_MAX_APIS]]
        return self._context.output(closure, [helm, "template"], words, _FOLDERS)

    @property
    def _templates(self) -> dict[str, bytes]:
        """Return the contents of templates, by their paths in the copy."""
        files = self._closure.all_files().items()
        return {path: file.content for path, file in files if path.endswith((".yaml", ".yml", ".tpl"))}

    def _definitions(self) -> Iterator[_Rendered]:
        """Yield the files in `crds/`, which are plain manifests."""
        for path, file in sorted(self._closure.all_files().items()):
            inner = os.path.relpath(path, self._root)
            if inner.startswith(f"crds{os.sep}") and inner.endswith((".yaml", ".yml")):
                yield _Rendered(f"---\n{file.content.decode('utf-8', 'replace').rstrip()}\n", f"chart/{inner}")


def _is_gone(text: str) -> bool:
    """Return whether a document is a hook without a lasting object: a job, or an object that Helm deletes
    or does not install.
    """
    value = next((mapping(value) for value in parsed("", text)), {}) if _HOOK in text else {}
    annotations = mapping(mapping(value.get("metadata")).get("annotations"))
    events = {event.strip() for event in text_of(annotations.get(_HOOK)).split(",")}
    if not annotations.get(_HOOK):
        return False
    is_deleted = "hook-succeeded" in text_of(annotations.get(f"{_HOOK}-delete-policy"))
    return is_deleted or events.isdisjoint(_LASTING) or value.get("kind") in ("Job", "Pod")


def _is_beside(path: str, content: bytes) -> bool:
    """Return whether a template makes no object of a release: notes for users, and tests.

    Its failure does not matter.
    """
    folder, name = os.path.split(path)
    if os.path.basename(folder) == _TEMPLATES:
        return name == "NOTES.txt"
    return folder.endswith(os.path.join(_TEMPLATES, "tests")) and _TEST_HOOK.search(content) is not None


def _split(text: str) -> Iterator[_Rendered]:
    """Yield the documents of a release. Documents with only comments are skipped."""
    source = ""
    for start, end in chunks(text):
        chunk = text[start:end]
        found = _SOURCE.search(chunk)
        source = found[1].strip() if found is not None else source
        if any(line.strip() and not line.startswith(("#", "---")) for line in chunk.splitlines()):
            body = chunk if chunk.endswith("\n") else f"{chunk}\n"
            yield _Rendered(last_key_wins(body if body.startswith("---") else f"---\n{body}"), source)
