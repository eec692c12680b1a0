"""What commands do, as functions: each reads or takes what the command reads, and returns what it prints as data."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from eastgate.authority.authority import Authority
from eastgate.authority.reading import ManifestError, read_documents
from eastgate.convert import Assumption, Conversion, Options, convert
from eastgate.reports.cluster import Cluster
from eastgate.reports.crds import definitions
from eastgate.reports.describe import Description
from eastgate.reports.describe import describe as describe_in
from eastgate.reports.diff import DiffReport, diff
from eastgate.reports.get import Listing, listing
from eastgate.reports.graph import Graph, GraphSelection, Grouping, make_graph, survey
from eastgate.reports.lint import Finding, lint
from eastgate.reports.tables import Run, read_tables
from eastgate.reports.tables import run_tables as run_read_tables
from eastgate.settings import Settings, SettingsError


def run_lint(authority: Authority) -> list[Finding]:
    """Find everything that is understood and probably not meant so, sorted by file and line: `eastgate lint`."""
    return lint(authority)


def describe(
    authority: Authority, kind: str, name: str | None = None, namespace: str | None = None
) -> list[Description]:
    """Describe what affects a thing, and who may reach it; all of a kind without a name: `eastgate describe`.

    Raises QuestionError where there is no such thing.
    """
    return describe_in(Cluster(authority), kind, name, namespace)


def list_objects(authority: Authority, kind: str, namespace: str | None = None, names: Iterable[str] = ()) -> Listing:
    """List policies, workloads, pods, services, gateways, routes, backends or namespaces: `eastgate get`."""
    return listing(Cluster(authority), kind, namespace=namespace, names=list(names))


def compare(old: Authority, new: Authority) -> DiffReport:
    """Find the requests that change their verdict, or prove that there is none: `eastgate diff`.

    Both have the same settings. Raises SettingsError where they have not.
    """
    if old.settings != new.settings:
        raise SettingsError("two authorities that are compared have the same settings")
    return diff(old, new)


def reach_graph(authority: Authority, selection: GraphSelection | None = None, by: Grouping | None = None) -> Graph:
    """Find out who can reach whom, of everything or of a part, put together or not: `eastgate graph`.

    Raises QuestionError where a caller or a destination is not there.
    """
    return make_graph(survey(authority, selection), by)


def convert_manifests(
    paths: Iterable[str | PathLike[str]],
    to: str,
    settings: Settings | None = None,
    *,
    assume: Iterable[Assumption] = (),
    istio_root_namespace: str | None = None,
) -> Conversion:
    """Write policies as another API has them, and say what is lost: `eastgate convert`.

    Raises ManifestError where a manifest has errors.
    """
    chosen = settings or Settings()
    reading = read_documents(paths, chosen)
    manifests, conversion = convert(reading, to, chosen, Options(frozenset(assume), istio_root_namespace))
    if manifests.reporter.errors:
        raise ManifestError(manifests.reporter.errors)
    return conversion


def run_tables(
    paths: Iterable[str | PathLike[str]],
    settings: Settings | None = None,
    *,
    coverage: bool = False,
    strict: bool = False,
) -> Run:
    """Run the decision tables in files and folders: `eastgate test`. What is wrong with them is in `diagnostics`."""
    tables, reporter = read_tables(paths, settings or Settings())
    run = run_read_tables(tables, coverage=coverage, strict=strict)
    run.diagnostics[:0] = reporter.diagnostics
    return run


def make_crds(kinds: Iterable[str] = ()) -> list[dict[str, object]]:
    """Make the CustomResourceDefinitions of the policies, or of some kinds: `eastgate crds`."""
    wanted = {kind.lower() for kind in kinds}
    made = definitions()
    return [crd for crd in made if not wanted or str(crd["spec"]["names"]["kind"]).lower() in wanted]
