"""Flux HelmReleases: the chart to render with its values, or the reason why it cannot be rendered here."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from eastgate.reading.manifests.node import NoNumberError, Plain, resolve
from eastgate.reading.repository.declarations import Declaration, entries, mapping, parsed, text_of, texts
from eastgate.reading.repository.model import CHARTS_NOT_FETCHED, ChartRender
from eastgate.reading.repository.parts import Draft, inside
from eastgate.reading.repository.patching import merged
from eastgate.reading.repository.tree import Tree

if TYPE_CHECKING:
    from eastgate.reading.repository.sources import RepositorySource

GROUP: Final = "helm.toolkit.fluxcd.io"
_LOCAL: Final = ("GitRepository", "Bucket", "ExternalArtifact")

Find = Callable[[str, str, str], Declaration | None]
"""Returns the declaration with a kind, a namespace and a name."""


def add_release(tree: Tree, sources: RepositorySource, release: Declaration, find: Find, draft: Draft) -> None:
    """Add the chart of a HelmRelease to an environment."""
    spec = release.spec
    for why in doubts_about(release):
        draft.leave_out(release.title, release.where, why)
    chart, named = _chart_of(release, find)
    source = mapping(chart.get("sourceRef"))
    path = text_of(chart.get("chart"))
    if text_of(source.get("kind")) not in _LOCAL:
        draft.leave_out(*_remote(release, chart, named), CHARTS_NOT_FETCHED)
        return
    folder = inside(tree, path)
    found = tree.folder(folder) if folder is not None else None
    if found is None or found.chart is None:
        name = f"{text_of(source.get('kind'))} `{text_of(source.get('name'))}`"
        why = f"the chart `{path}` of the {name} is not in this repository, and {CHARTS_NOT_FETCHED}"
        draft.leave_out(release.title, release.where, why, CHARTS_NOT_FETCHED)
        return
    if (doubt := sources.doubt_of_flux(release, source, path, find)) is not None:
        draft.leave_out(release.title, release.where, doubt)
    namespace = text_of(spec.get("targetNamespace")) or release.namespace or None
    files = [inside(tree, each) for each in texts(chart.get("valuesFiles"))]
    for name, file in zip(texts(chart.get("valuesFiles")), files, strict=True):
        if file is None:
            draft.leave_out(f"values of {release.title}", release.where, f"`{name}` is not in this repository")
    draft.add_chart(
        found,
        ChartRender(
            found.path,
            release_name(release),
            namespace,
            tuple(file for file in files if file is not None),
            tuple(_values(release, find, draft)),
        ),
    )
    if entries(spec.get("postRenderers")):
        draft.leave_out(f"postRenderers of {release.title}", release.where, "they are not applied to the chart")


def doubts_about(declaration: Declaration) -> Iterable[str]:
    """Yield the reasons why the deployed objects may differ from a declaration of Flux, or be in another cluster."""
    if declaration.unsure:
        yield declaration.unsure
    if declaration.spec.get("suspend") is True:
        yield "it is suspended: what it deployed before may be something else"
    if declaration.spec.get("kubeConfig") and remote_cluster(declaration) is None:
        yield "it deploys to another cluster, which its kubeConfig names"


def remote_cluster(declaration: Declaration) -> tuple[str, str] | None:
    """Return namespace and name of the object with the kubeconfig of the cluster that a declaration deploys to.

    None if it deploys to the cluster where it is declared, or its `kubeConfig` names no object.
    """
    config = mapping(declaration.spec.get("kubeConfig"))
    references = (mapping(config.get(kind)) for kind in ("secretRef", "configMapRef"))
    name = next((name for reference in references if (name := text_of(reference.get("name")))), "")
    return (declaration.namespace, name) if name else None


def local_charts(tree: Tree, release: Declaration) -> Iterable[str]:
    """Yield the real path of the chart that a HelmRelease names in this repository."""
    chart = mapping(mapping(release.spec.get("chart")).get("spec"))
    path = text_of(chart.get("chart"))
    folder = inside(tree, path) if text_of(mapping(chart.get("sourceRef")).get("kind")) in _LOCAL and path else None
    if folder is not None:
        yield os.path.realpath(folder)


def release_name(release: Declaration) -> str:
    """Return the name of the Helm release."""
    target = text_of(release.spec.get("targetNamespace"))
    name = text_of(release.spec.get("releaseName"))
    return name or (f"{target}-{release.name}" if target else release.name)


def _chart_of(release: Declaration, find: Find) -> tuple[Mapping[str, Plain], Declaration | None]:
    """Return the `chart` and `sourceRef` of a release, and the object that names the source of the chart."""
    template = mapping(mapping(release.spec.get("chart")).get("spec"))
    reference = mapping(release.spec.get("chartRef"))
    if not template and reference:
        kind, name = text_of(reference.get("kind")), text_of(reference.get("name"))
        source = find(kind, text_of(reference.get("namespace")) or release.namespace, name)
        if kind == "HelmChart" and source is not None:
            template = source.spec
        elif kind == "ExternalArtifact":
            return {"chart": ".", "sourceRef": {"kind": "", "name": name}}, source
        else:
            return {"sourceRef": reference}, source
    reference = mapping(template.get("sourceRef"))
    namespace = text_of(reference.get("namespace")) or release.namespace
    return template, find(text_of(reference.get("kind")), namespace, text_of(reference.get("name")))


def _remote(release: Declaration, chart: Mapping[str, Plain], source: Declaration | None) -> tuple[str, str, str]:
    """Return the description of a chart that must be fetched: its name and version, and the name of the source."""
    reference = mapping(chart.get("sourceRef"))
    spec = source.spec if source is not None else {}
    name = text_of(chart.get("chart")) or text_of(spec.get("url")).rstrip("/").rpartition("/")[2]
    pinned = mapping(spec.get("ref"))
    version = chart.get("version") or pinned.get("tag") or pinned.get("semver") or pinned.get("digest")
    shown = f"the chart `{name}`" if name else "its chart"
    shown += f" {version}" if isinstance(version, str | int | float) and version != "*" else ""
    kind = text_of(reference.get("kind")) or "source"
    why = f"{shown} is from the {kind} `{text_of(reference.get('name'))}`: {CHARTS_NOT_FETCHED}"
    return release.title, release.where, why


def _values(release: Declaration, find: Find, draft: Draft) -> Iterable[Mapping[str, Plain]]:
    """Yield the values of a release. Later ones win."""
    for entry in entries(release.spec.get("valuesFrom")):
        reference = mapping(entry)
        kind, name = text_of(reference.get("kind")), text_of(reference.get("name"))
        source = find(kind, release.namespace, name)
        key = text_of(reference.get("valuesKey")) or "values.yaml"
        data = data_of(source) if source is not None and not source.unsure else {}
        text = data.get(key)
        if text is None:
            why = f"they are in the {kind} `{name}`, which is not readable in this repository"
            draft.leave_out(f"values of {release.title}", release.where, why)
            continue
        path = text_of(reference.get("targetPath"))
        values = [_nested(path, text)] if path else parsed(name, text)
        yield from (value for value in values if isinstance(value, dict))
    values_here = mapping(release.spec.get("values"))
    if values_here:
        yield values_here


def _nested(path: str, text: str) -> Plain:
    """Return a value at a path of keys, in the form of `helm --set`."""
    try:
        value: Plain = resolve(text) if text and "\n" not in text else text
    except NoNumberError:
        value = text
    return with_parameter({}, path, value)


def with_parameter(values: dict[str, Plain], path: str, value: Plain) -> dict[str, Plain]:
    """Return values with one more, at a path such as `ingress.hosts[0]` or `labels.a\\.b`."""
    steps = path.replace("\\.", "\0").split(".")
    for step in reversed(steps[:20]):
        key, *indices = step.replace("\0", ".").replace("]", "").split("[")
        for _ in indices:
            value = [value]  # only the first item is ever set alone
        value = {key: value}
    return mapping(merged(values, value))


def data_of(source: Declaration) -> dict[str, str | None]:
    """Return the data of a ConfigMap or a Secret; None for an encrypted value."""
    found: dict[str, str | None] = {}
    is_secret = source.kind == "Secret"
    for key, value in mapping(source.data.get("data")).items():
        found[key] = _readable(_decoded(value) if is_secret else value)
    for key, value in mapping(source.data.get("stringData")).items():
        found[key] = _readable(value)
    return found


def _readable(value: Plain) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return None if str(value).startswith("ENC[") else str(value)


def _decoded(value: Plain) -> Plain:
    if not isinstance(value, str) or value.startswith("ENC["):
        return value
    try:
        return base64.b64decode(value, validate=False).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
