"""Charts in kustomizations: each is rendered, and its output replaces it among the resources."""

from __future__ import annotations

import os
from collections.abc import Mapping

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.reading.manifests.node import Plain
from eastgate.reading.repository.helm import CHART, NO_HELM, Release
from eastgate.reading.repository.model import ChartRender, RepositoryOptions
from eastgate.reading.repository.running import BuildContext, Built
from eastgate.reading.repository.written import WrittenFile


@dataclass(frozen=True, slots=True)
class InflatedChart:
    """The output of a chart in a kustomization, by helm's names for its templates."""

    release: Release
    folder: str
    files: Mapping[str, bytes]

    def written(self, path: str) -> tuple[str, WrittenFile | None]:
        """Return the template of a file in the copy."""
        return self.release.written(os.path.relpath(path, self.folder))


def inflate(
    entry: Plain, home: Plain, folder: tuple[str, str], place: str, where: str, context: BuildContext, built: Built
) -> InflatedChart | None:
    """Render an entry of `helmCharts`; None if it is left out. `folder` is the folder of the kustomization, real and
    shown.

    `place` is the folder for the output in the copy.
    """
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(name, str):
        built.leave_out("an entry of helmCharts", where, "it has no name")
        return None
    what = f"chart `{printable(name)}`"
    found = _folder(entry, name, home, folder[0])
    if found is None:
        built.leave_out(what, where, "it would have to be fetched")
        return None
    if context.helm is None:
        built.leave_out(what, where, NO_HELM)
        return None
    part = _part(entry, os.path.normpath(os.path.join(folder[1], found)), folder[1])
    release = Release(part, context, built, RepositoryOptions())
    documents = release.documents()
    if documents is None:
        return None
    files: dict[str, list[str]] = {}
    for document in documents:
        steps = [step for step in document.source.split("/") if step not in ("", os.curdir, os.pardir)]
        files.setdefault(os.path.join(*steps) if steps else "chart.yaml", []).append(document.text)
    return InflatedChart(release, place, {name: "".join(texts).encode() for name, texts in files.items()})


def _folder(entry: Mapping[str, Plain], name: str, home: Plain, folder: str) -> str | None:
    """Return the folder of an existing chart, relative to the folder of the kustomization."""
    charts = home if isinstance(home, str) else "charts"
    version = entry.get("version")
    below = [os.path.join(f"{name}-{version}", name), name] if isinstance(version, str) else [name]
    places = (os.path.join(charts, inner) for inner in below)
    return next((place for place in places if os.path.isfile(os.path.join(folder, place, CHART))), None)


def _part(entry: Mapping[str, Plain], chart: str, folder: str) -> ChartRender:
    inline, merge = entry.get("valuesInline"), entry.get("valuesMerge")
    values = (inline,) if isinstance(inline, dict) else ()
    more = entry.get("additionalValuesFiles")
    listed = [entry.get("valuesFile"), *(more if isinstance(more, list) else ())]
    files = tuple(os.path.normpath(os.path.join(folder, file)) for file in listed if isinstance(file, str))
    if merge == "replace" and values:
        files = ()
    release, namespace = entry.get("releaseName"), entry.get("namespace")
    return ChartRender(
        chart,
        release if isinstance(release, str) and release else "release-name",
        namespace if isinstance(namespace, str) and namespace else None,
        files,
        values,
    )
