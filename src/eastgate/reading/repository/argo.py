"""Environments of Argo CD: the objects that its Applications deploy.

An Application is an environment. If its sources hold other Applications, all of them are one environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.node import NoNumberError, Plain, resolve
from eastgate.reading.repository.applicationsets import OPEN, applications_of
from eastgate.reading.repository.contents import Contents, contents_of, declarations_as_built, patches_of
from eastgate.reading.repository.declarations import Declaration, entries, mapping, parsed, text_of, texts
from eastgate.reading.repository.model import CHARTS_NOT_FETCHED, NOT_HERE, ChartRender
from eastgate.reading.repository.parts import Draft, ToolChanges, inside, leads_out
from eastgate.reading.repository.patching import apply
from eastgate.reading.repository.releases import with_parameter
from eastgate.reading.repository.sources import RepositorySource
from eastgate.reading.repository.tree import Folder, Tree

_GROUP = "argoproj.io"
_MADE = regex(r"(?m)^\s*kind:\s*Application(?:Set)?\s*$")
_OVERLAY = ("namePrefix", "nameSuffix", "patches", "components", "commonLabels", "commonAnnotations", "replicas")
_MAX_APPLICATIONS = 5000
_IN_CLUSTER = ("in-cluster", "https://kubernetes.default.svc")
_ELSEWHERE = "it is in another repository, which is not fetched"


@dataclass(slots=True, eq=False)
class ArgoApplication:
    """An Application that no other one deploys, and the objects that it deploys."""

    name: str
    folder: str
    entry: str
    namespace: str | None
    draft: Draft


def argo_applications(tree: Tree, sources: RepositorySource) -> list[ArgoApplication]:
    """Return the objects of each Application that no other one deploys."""
    declared = declarations_as_built(tree, is_argo)
    walks = [_Application(tree, sources, application) for each in declared for application in _applications(tree, each)]
    held = {key for walk in walks for key in walk.held - {walk.application.key}}
    roots = [walk for walk in walks if walk.application.key not in held]
    reached = {key for walk in roots for key in (*walk.held, walk.application.key)}
    for walk in walks:
        if walk.application.key not in reached:  # a circle
            roots.append(walk)
            reached |= {*walk.held, walk.application.key}
    return [result for walk in roots for result in walk.results()]


def is_argo(declaration: Declaration) -> bool:
    """Return whether an object is an Application or an ApplicationSet of Argo CD."""
    return (
        declaration.group == _GROUP and declaration.kind in ("Application", "ApplicationSet") and bool(declaration.name)
    )


def _cluster_of(application: Declaration) -> str:
    """Return the cluster that an Application deploys to; empty for the cluster of Argo CD."""
    destination = mapping(application.spec.get("destination"))
    name, server = text_of(destination.get("name")), text_of(destination.get("server"))
    return "" if (name or server) in ("", *_IN_CLUSTER) else name or server


def _label(cluster: str) -> str:
    """Return a name for a cluster: its name in Argo CD, or the host of its server."""
    host = cluster.partition("://")[2] or cluster
    return host.partition("/")[0].partition(":")[0] or "in-cluster"


def _applications(tree: Tree, declaration: Declaration) -> Iterator[Declaration]:
    if declaration.kind == "ApplicationSet":
        yield from applications_of(tree, declaration)
    else:
        yield declaration


class _Application:
    """Follows an Application to all objects that it deploys."""

    def __init__(self, tree: Tree, sources: RepositorySource, application: Declaration) -> None:
        self._tree = tree
        self._sources = sources
        self.application = application
        self.held: set[tuple[str, int, str]] = set()
        self._drafts: dict[str, Draft] = {}  # by the cluster that Argo CD deploys to
        self._followed: set[tuple[str, int, str, str]] = set()
        self._follow(application)

    def results(self) -> list[ArgoApplication]:
        """Return the result for each cluster."""
        application, own = self.application, _cluster_of(self.application)
        namespace = text_of(mapping(application.spec.get("destination")).get("namespace")) or None
        folder = application.folder or os.path.dirname(application.path) or os.curdir
        drafts = {cluster: draft for cluster, draft in self._drafts.items() if draft.deploys or draft.left_out}
        drafts = drafts or dict([*self._drafts.items()][:1])
        first, *_ = drafts.values()
        # an Application that only declares Applications is not an environment, but its files are used
        for each in self._drafts.values():
            first.files, first.folders = first.files | each.files, first.folders | each.folders
        if len(drafts) == 1:
            return [ArgoApplication(application.name, folder, application.path, namespace, first)]
        return [
            ArgoApplication(_label(cluster), folder, application.path, namespace if cluster == own else None, draft)
            for cluster, draft in drafts.items()
        ]

    def _draft(self, application: Declaration) -> Draft:
        return self._drafts.setdefault(_cluster_of(application), Draft())

    def _follow(self, application: Declaration) -> None:
        key = (*application.key, application.name)
        if key in self._followed or len(self._followed) > _MAX_APPLICATIONS:
            return
        self._followed.add(key)
        self._draft(application)
        if application.unsure:
            self._leave_out(application, application.unsure)
        spec = application.spec
        listed = [mapping(each) for each in entries(spec.get("sources"))] or [mapping(spec.get("source"))]
        references = {
            f"${text_of(each.get('ref'))}": text_of(each.get("repoURL")) for each in listed if each.get("ref")
        }
        for source in listed:
            if source.get("ref") and not source.get("path") and not source.get("chart"):
                continue  # a source that only provides files to the others
            self._source(application, source, references)

    def _source(self, application: Declaration, source: Mapping[str, Plain], references: Mapping[str, str]) -> None:
        path, chart, url = (text_of(source.get(key)) for key in ("path", "chart", "repoURL"))
        if chart:
            version = source.get("targetRevision")
            shown = f"the chart `{chart}`{f' {version}' if isinstance(version, str | int | float) else ''}"
            remote = f"{shown} is from a chart repository: {CHARTS_NOT_FETCHED}"
            self._leave_out(application, remote, CHARTS_NOT_FETCHED)
        elif why := self._problem(path, url, application):
            self._leave_out(application, why)
        else:
            place = inside(self._tree, path)
            folder = self._tree.folder(place) if place is not None else None
            if folder is not None:
                if (doubt := self._sources.doubt(url, path)) is not None:
                    self._leave_out(application, doubt)
                self._folder(application, source, folder, references)
            else:
                self._leave_out(application, f"the folder `{path}` is not in this repository", NOT_HERE)

    def _problem(self, path: str, url: str, application: Declaration) -> str | None:
        if "{{" in path or "$ARGOCD" in path or application.data.get(OPEN):
            why = text_of(application.data.get(OPEN))
            return why or f"its path `{path}` has a parameter whose value is not known"
        if not path:
            return "it has no source with a path"
        if leads_out(path):
            return f"its path `{path}` leads out of the repository"
        if self._sources.is_elsewhere(url, path):
            return _ELSEWHERE
        return None

    def _leave_out(self, application: Declaration, why: str, reason: str = "") -> None:
        self._draft(application).leave_out(application.title, application.where, why, reason)

    def _folder(
        self, application: Declaration, source: Mapping[str, Plain], folder: Folder, references: Mapping[str, str]
    ) -> None:
        """Add the objects that an Application takes from a folder, with the tool that Argo CD detects."""
        namespace = text_of(mapping(application.spec.get("destination")).get("namespace")) or None
        if folder.chart is not None and not source.get("directory") and not source.get("kustomize"):
            self._chart(application, source, folder, references, namespace)
        elif folder.kustomization is not None and not source.get("directory"):
            kustomize = mapping(source.get("kustomize"))
            overlay = {key: kustomize[key] for key in _OVERLAY if kustomize.get(key)}
            changes = ToolChanges(text_of(kustomize.get("namespace")) or None, overlay, default_namespace=namespace)
            self._take(application, folder, contents_of(self._tree, folder), changes)
        elif source.get("plugin"):
            self._leave_out(application, f"`{folder.path}` is rendered by a plugin of Argo CD")
        else:
            options = mapping(source.get("directory"))
            contents = _directory(folder, options)
            if _has_jsonnet(folder, options):
                self._leave_out(application, f"`{folder.path}` has Jsonnet")
            self._take(application, folder, contents, ToolChanges(default_namespace=namespace))

    def _take(self, application: Declaration, folder: Folder, contents: Contents, changes: ToolChanges) -> None:
        self._draft(application).add_contents(folder, contents, changes)
        declarations = contents.declarations
        for patch in patches_of(self._tree, folder.path, dict(changes.overlay)):
            declarations = apply(patch, declarations)
        for declaration in declarations:
            if is_argo(declaration):
                self.held.add(declaration.key)
                for each in _applications(self._tree, declaration):
                    self._follow(each)

    def _chart(
        self,
        application: Declaration,
        source: Mapping[str, Plain],
        folder: Folder,
        references: Mapping[str, str],
        namespace: str | None,
    ) -> None:
        helm = mapping(source.get("helm"))
        files: list[str] = []
        for name in texts(helm.get("valueFiles")):
            file = self._value_file(name, folder, references)
            if file is not None:
                files.append(file)
            elif helm.get("ignoreMissingValueFiles") is not True:
                why = f"the values `{name}` are not in this repository"
                self._draft(application).leave_out(f"values of {application.title}", application.where, why)
        release = text_of(helm.get("releaseName")) or application.name
        namespace = text_of(helm.get("namespace")) or namespace
        values = (*_values(helm), *self._file_parameters(application, folder, helm))
        self._draft(application).add_chart(folder, ChartRender(folder.path, release, namespace, tuple(files), values))
        if makes_applications(self._tree, folder):
            why = f"the chart `{folder.path}` makes Applications, which are not followed"
            self._leave_out(application, why)

    def _file_parameters(
        self, application: Declaration, folder: Folder, helm: Mapping[str, Plain]
    ) -> Iterator[Mapping[str, Plain]]:
        """Yield the values that are the contents of files."""
        for entry in entries(helm.get("fileParameters")):
            name, path = (text_of(mapping(entry).get(key)) for key in ("name", "path"))
            text = self._tree.text(os.path.join(folder.path, path)) if path and not path.startswith("$") else None
            if text is None:
                self._leave_out(application, f"the file `{path}` of the parameter `{name}` is not in this repository")
            else:
                yield with_parameter({}, name, text)

    def _value_file(self, name: str, folder: Folder, references: Mapping[str, str]) -> str | None:
        if "://" in name:
            return None
        reference, _, rest = name.partition("/")
        if reference in references:
            is_here = self._sources.doubt(references[reference], rest) is None
            return inside(self._tree, rest) if is_here else None
        if name.startswith("/"):
            return inside(self._tree, name)
        path = os.path.normpath(os.path.join(folder.path, name))
        return path if os.path.isfile(path) and self._tree.may_read(path) else None


def makes_applications(tree: Tree, chart: Folder) -> bool:
    """Return whether a chart has templates of Applications."""
    templates = os.path.join(chart.path, "templates")
    try:
        names = sorted(os.listdir(templates))
    except OSError:
        return False
    contents = (tree.text(os.path.join(templates, name)) or "" for name in names if name.endswith((".yaml", ".yml")))
    return any(_MADE.search(text) is not None for text in contents)


def _values(helm: Mapping[str, Plain]) -> Iterator[Mapping[str, Plain]]:
    """Yield the values of a source. Later ones win."""
    text = helm.get("values")
    if isinstance(text, str):
        yield from (value for value in parsed("values", text) if isinstance(value, dict))
    given = mapping(helm.get("valuesObject"))
    if given:
        yield given
    parameters: dict[str, Plain] = {}
    for entry in entries(helm.get("parameters")):
        fields = mapping(entry)
        value = fields.get("value")
        if isinstance(value, str) and not fields.get("forceString"):
            value = _resolved(value)
        if value is not None:
            parameters = with_parameter(parameters, text_of(fields.get("name")), value)
    if parameters:
        yield parameters


def _resolved(text: str) -> Plain:
    try:
        return resolve(text) if text else text
    except NoNumberError:
        return text


def _directory(folder: Folder, options: Mapping[str, Plain]) -> Contents:
    """Return the files of a folder that is applied as it is. With `recurse`, include those below it."""
    contents = Contents()
    for each in folder.walk() if options.get("recurse") is True else [folder]:
        for file in each.files:
            relative = os.path.relpath(file.path, folder.path)
            if _is_chosen(relative, text_of(options.get("include")), text_of(options.get("exclude"))):
                contents.declarations += contents.add_file(file)
                contents.plain += [file] if file.may_have_objects else []
            else:
                contents.excluded.add(file.real)
    return contents


def _is_chosen(path: str, include: str, exclude: str) -> bool:
    return (not include or _matches(path, include)) and not (exclude and _matches(path, exclude))


def _matches(path: str, pattern: str) -> bool:
    """Return whether a pattern of Argo CD matches: `*.yaml`, or several of them in braces."""
    start, brace, rest = pattern.partition("{")
    alternatives, closing, end = rest.partition("}")
    several: Iterable[str] = [pattern]
    if brace and closing:
        several = [f"{start}{alternative}{end}" for alternative in alternatives.split(",")][:100]
    return any(fnmatchcase(path, each) for each in several)


def _has_jsonnet(folder: Folder, options: Mapping[str, Plain]) -> bool:
    """Return whether a folder that is applied as it is has Jsonnet files."""
    include, exclude = text_of(options.get("include")), text_of(options.get("exclude"))
    for each in folder.walk() if options.get("recurse") is True else [folder]:
        try:
            names = [name for name in os.listdir(each.path) if name.endswith(".jsonnet")]
        except OSError:
            continue
        paths = (os.path.relpath(os.path.join(each.path, name), folder.path) for name in names)
        if any(_is_chosen(path, include, exclude) for path in paths):
            return True
    return False
