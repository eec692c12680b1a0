"""The Authority of the Python API: it decides questions. The commands of the command line are its methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Unpack, get_type_hints, overload

from eastgate.authority.authority import Authority as DecidingAuthority
from eastgate.authority.deciding import Prepared
from eastgate.authority.decisions import Decision
from eastgate.authority.environments import only_deployment
from eastgate.authority.leaving_out import leave_out
from eastgate.authority.questions import Question, QuestionError
from eastgate.authority.reading import ManifestError, read_manifests, read_plain, read_whole_text
from eastgate.basics.public import checked, require
from eastgate.cluster import question as question_module
from eastgate.cluster.ends import Destination, Source
from eastgate.cluster.question import RequestParts
from eastgate.cluster.unread import Handling
from eastgate.reading.manifests import Bounds
from eastgate.settings import Settings, SettingsError, Sidecars

# Modules that few programs need are imported when they are used.
if TYPE_CHECKING:
    from eastgate.convert import Conversion
    from eastgate.reading.jwt import KeySource
    from eastgate.reports.describe import Description
    from eastgate.reports.diff import DiffReport
    from eastgate.reports.get import Listing
    from eastgate.reports.graph import Graph
    from eastgate.reports.lint import Finding
    from eastgate.reports.tables import Run


class Authority(DecidingAuthority):
    """Policies and the objects that they apply to.

    It decides questions, reports on all requests, and may be changed.
    """

    def decide(self, question: Question) -> Decision:
        """Decide a question. Raises QuestionError if it cannot be decided."""
        return super().decide(_typed(question))

    def decide_all(self, questions: Iterable[Question | Prepared]) -> list[Decision | QuestionError]:
        """Decide many questions, in order.

        If a question cannot be decided, its QuestionError is in the place of the decision.
        """
        return super().decide_all(each if isinstance(each, Prepared) else _typed(each) for each in questions)

    def prepare(self, question: Question) -> Prepared:
        """Resolve a question that will be decided often. Raises QuestionError if its ends do not exist."""
        return super().prepare(_typed(question))

    @checked
    def check(self, source: Source | str, to: Destination | str, **request: Unpack[RequestParts]) -> Decision:
        """Decide whether a caller may reach a destination: `eastgate check`.

        Attributes that are left out are unknown: the decision allows only if every value would be allowed. Raises
        QuestionError if it cannot be decided.
        """
        return super().decide(Question.of(source, to, namespace=self.settings.namespace, **request))

    @overload
    def explain(self, source: Decision, *, verbose: bool = False) -> str: ...

    @overload
    def explain(
        self, source: Source | str, to: Destination | str, *, verbose: bool = False, **request: Unpack[RequestParts]
    ) -> str: ...

    @checked
    def explain(
        self,
        source: Decision | Source | str,
        to: Destination | str | None = None,
        *,
        verbose: bool = False,
        **request: Unpack[RequestParts],
    ) -> str:
        """Return the rules and YAML lines that decide a request, or that made a decision: `eastgate explain`."""
        from eastgate.reports.explain import explain

        if isinstance(source, Decision):
            return explain(source, verbose=verbose)
        if to is None:
            raise TypeError("explain() needs a destination: to")
        return explain(self.check(source, to, **request), verbose=verbose)

    @checked
    def graph(
        self,
        *,
        sources: str | Iterable[str] = (),
        targets: str | Iterable[str] = (),
        port: int | None = None,
        namespace: str | None = None,
        tool: str | None = None,
        external: bool = False,
        denied: bool = False,
        near: bool = False,
        by: str | None = None,
    ) -> Graph:
        """Return the graph of callers and destinations, of everything or of a part: `eastgate graph`.

        Names in `sources` and `targets` may have `*` in them. `external`: only callers from outside. `denied`: also
        pairs that are denied everything. `near`: also the access of a pod to itself and from its node. `by`: the
        grouping, `workload`, `service-account`, `app` or `namespace`. Raises QuestionError if an end does not exist.
        """
        from eastgate.reports.cluster import Cluster
        from eastgate.reports.graph import GraphSelection, Grouping, make_graph, survey
        from eastgate.reports.graph.invented import join, name_invented, worlds_of
        from eastgate.reports.graph.notes import list_notes, mark_doubts

        selection = GraphSelection(
            _several(sources), _several(targets), port, namespace, tool, external=external, denied=denied, near=near
        )
        grouping = None if by is None else Grouping(by)
        cluster = Cluster(self)
        graphs: list[Graph] = []
        for invention in worlds_of(self):
            surveyed = survey(self, selection)
            made = mark_doubts(cluster, make_graph(surveyed, grouping))
            made = replace(made, notes=(*made.notes, *list_notes(cluster, surveyed.points)))
            graphs.append(name_invented(made, invention))
        return join(graphs)

    def lint(self) -> list[Finding]:
        """Return probable mistakes in policies, such as rules without effect, by file and line: `eastgate lint`."""
        from eastgate.reports.lint import lint

        return lint(self)

    @checked
    def describe(self, kind: str, name: str | None = None, namespace: str | None = None) -> list[Description]:
        """Return the policies that affect an object, and its callers: `eastgate describe`.

        Without a name, describe all objects of a kind. Raises QuestionError if there is no such object.
        """
        from eastgate.reports.cluster import Cluster
        from eastgate.reports.describe import describe

        return describe(Cluster(self), kind, name, namespace)

    @checked
    def get(self, kind: str, *names: str, namespace: str | None = None, selector: str | None = None) -> Listing:
        """List policies, workloads, pods, services, gateways, routes, backends or namespaces: `eastgate get`.

        `selector` selects by labels: `app=web,tier in (a, b)`.
        """
        from eastgate.reports.cluster import Cluster
        from eastgate.reports.get import listing, parse_selector

        wanted = None if selector is None else parse_selector(selector)
        return listing(Cluster(self), kind, namespace=namespace, names=names, selector=wanted)

    @checked
    def diff(self, new: DecidingAuthority) -> DiffReport:
        """Find the requests that change their verdict, or prove that no request does: `eastgate diff`.

        Raises SettingsError if `new` has other settings.
        """
        from eastgate.reports.diff import diff

        if self.settings != new.settings:
            raise SettingsError("two authorities that are compared have the same settings")
        return diff(self, new)

    @checked
    def convert(
        self, to: str, *, assume: str | Iterable[str] = (), istio_root_namespace: str | None = None
    ) -> Conversion:
        """Convert the policies to another API, and list the losses: `eastgate convert`.

        `assume`: the assumptions of `--assume`. Raises ManifestError if a policy has errors.
        """
        from eastgate.convert import KINDS, Assumption, Options, convert_policies
        from eastgate.convert.model import Item

        if to not in KINDS:
            raise ValueError(f"to must be one of {', '.join(sorted(KINDS))}, not {to!r}")
        if self.rejected:
            raise ManifestError([error for policy in self.rejected for error in policy.errors])
        read = [(policy, self.document_of(policy.ref)) for policy in self.policies]
        items = [Item(policy, document) for policy, document in read if document is not None]
        items.sort(key=lambda item: (item.document.span.file, item.document.span.line))
        options = Options(frozenset(map(Assumption, _several(assume))), istio_root_namespace)
        # the meaning of policies does not depend on their enforcer
        settings = replace(self.settings, sidecars=Sidecars.ASSUMED)
        return convert_policies(items, to, self.world, settings, options)


_parts = attrgetter(*Question.__match_args__)
_known_types: set[tuple[type, ...]] = set()
"""The types of questions whose parts have been checked."""


def _typed(question: object) -> Question:
    """Return the question. Raises TypeError if it is not a Question, or if one of its parts has a wrong type."""
    if not isinstance(question, Question):
        raise TypeError(f"question must be a Question, not {type(question).__name__}: {question!r:.60}")
    types = tuple(map(type, _parts(question)))
    if types not in _known_types:
        hints = get_type_hints(Question, vars(question_module))
        for name, value in zip(Question.__match_args__, _parts(question), strict=True):
            require(name, value, hints[name])
        _known_types.add(types)
    return question


def _several(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


@checked
def load(
    *paths: str | PathLike[str],
    settings: Settings | None = None,
    keys: KeySource | None = None,
    follow: bool = False,
    exclude: str | Iterable[str] = (),
    environment: str | None = None,
    helm: str | PathLike[str] | None = None,
    helm_values: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
    strict: bool = True,
    unread: Handling = Handling.ERROR,
    live: bool = False,
) -> Authority:
    """Read manifests and build an authority on them. Raises ManifestError with all errors.

    With `follow`, links that lead out of a folder are followed. `exclude` are patterns of files to leave out.
    `environment` selects one of several environments of a repository; without it, the ManifestError lists them. Without
    `strict`, documents with errors are left out, and `unread` selects how answers that they could change are treated.
    `helm` and `helm_values` are the options of the command line. `strict`, `unread` and `live` are those of
    `Authority`.
    """
    bounds = Bounds.of(paths, follow=follow, exclude=_several(exclude))
    values = (helm_values,) if isinstance(helm_values, str | PathLike) else tuple(helm_values)
    options = None
    if helm is not None or values:
        from eastgate.reading.repository import RepositoryOptions

        options = RepositoryOptions(None if helm is None else fspath(helm), tuple(fspath(value) for value in values))
    patterns = () if environment is None else (environment,)
    found = only_deployment(paths, bounds, patterns, options, way_out=lambda name: f'choose one: environment="{name}"')
    manifests = read_manifests(found.paths, settings, bounds=bounds)
    if not strict:
        leave_out(manifests)
    return Authority(manifests, keys=keys, strict=strict, unread=unread, live=live)


@checked
def from_text(
    text: str,
    settings: Settings | None = None,
    keys: KeySource | None = None,
    *,
    strict: bool = True,
    unread: Handling = Handling.ERROR,
    live: bool = False,
) -> Authority:
    """Build an authority on the manifests in a text, in YAML or JSON. Raises ManifestError as `load` does."""
    manifests = read_whole_text("text", text, settings or Settings())
    return Authority(manifests, keys=keys, strict=strict, unread=unread, live=live)


@checked
def from_objects(
    objects: Iterable[Mapping[str, Any]],
    settings: Settings | None = None,
    keys: KeySource | None = None,
    *,
    strict: bool = True,
    unread: Handling = Handling.ERROR,
    live: bool = False,
) -> Authority:
    """Build an authority on objects of the Kubernetes API, in the form of client libraries. Raises ManifestError."""
    manifests = read_plain(objects, settings or Settings(), whole=True)
    return Authority(manifests, keys=keys, strict=strict, unread=unread, live=live)


@checked
def connect(
    context: str | None = None,
    *,
    kubeconfig: str | PathLike[str] | None = None,
    namespace: str | None = None,
    settings: Settings | None = None,
    keys: KeySource | None = None,
    strict: bool = True,
    unread: Handling = Handling.ERROR,
    live: bool = False,
) -> Authority:
    """Read the objects of a running cluster and build an authority on them, as `--cluster` does. Raises ManifestError.

    `context` is a context of the kubeconfig, by default the current one. If a kind may not be listed in all namespaces,
    only `namespace`, or the namespace of the context, is read. The pods of the cluster show which of them have a proxy.
    """
    from eastgate.authority.sources.listing import ClusterPath

    path, seen = ClusterPath(kubeconfig, context, namespace), replace(settings or Settings(), sidecars=Sidecars.ACTUAL)
    return Authority(read_manifests(path, seen), keys=keys, strict=strict, unread=unread, live=live)


@checked
def test(
    *paths: str | PathLike[str], settings: Settings | None = None, coverage: bool = False, strict: bool = False
) -> Run:
    """Run the decision tables and invariants in files and folders: `eastgate test`.

    The `diagnostics` of the run have the errors of the tables.
    """
    from eastgate.reports.tables import read_tables, run_tables

    tables, reporter = read_tables(paths, settings or Settings())
    run = run_tables(tables, coverage=coverage, strict=strict)
    run.diagnostics[:0] = reporter.diagnostics
    return run


test.__test__ = False  # type: ignore[attr-defined]  # it is no test of pytest's


@checked
def crds(*kinds: str) -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of the policies, or of some kinds: `eastgate crds`."""
    from eastgate.reports.crds import definitions

    wanted = {kind.lower() for kind in kinds}
    made = definitions()
    return [crd for crd in made if not wanted or str(crd["spec"]["names"]["kind"]).lower() in wanted]
