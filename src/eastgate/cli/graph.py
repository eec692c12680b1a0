"""`graph`: access between callers and destinations."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from eastgate.authority.authority import Authority
from eastgate.authority.questions import QuestionError, ends
from eastgate.basics.collection import no_collection
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cli import complete
from eastgate.cli.environments import answer_each
from eastgate.cli.inspecting import cluster_from, completeness, inspecting_options
from eastgate.cli.options import Sources, more_files, record
from eastgate.cli.output import (
    ALLOWED,
    FROM_WHAT_WAS_READ,
    PARTIAL,
    UNDECIDED,
    colored,
    emit,
    emit_json,
    fail,
    mark_empty,
    output_option,
    print_lines,
    terminal_width,
)
from eastgate.cli.unconsidered import note_absence
from eastgate.cluster.unread import parts_of
from eastgate.reports.cluster import Cluster
from eastgate.reports.graph import FORMATS, GraphSelection, Grouping, Survey, make_graph, render, survey
from eastgate.reports.graph.invented import join, name_invented, worlds_of
from eastgate.reports.graph.making import MOST_NODES
from eastgate.reports.graph.model import Graph
from eastgate.reports.graph.notes import list_notes, mark_doubts
from eastgate.reports.graph.rendering import PICTURES
from eastgate.reports.graph.selection import port_of
from eastgate.reports.graph.text import to_text
from eastgate.reports.graph.unused import find_unused, unused_text

_EXIT = (
    "Exits with 0; 2 if a caller or destination does not exist or a policy about one has errors; "
    "3 if Eastgate did not read an object that could change the graph."
)


_STATUSES = (ALLOWED, PARTIAL, UNDECIDED)  # the worst last


@dataclass(frozen=True, slots=True, kw_only=True)
class _SelectionOptions:
    """The callers, destinations and pairs that are shown."""

    callers: tuple[str, ...]
    targets: tuple[str, ...]
    port: str | None
    tool: str | None
    external: bool
    denied: bool
    near: bool

    def selection(self, authority: Authority, sources: Sources) -> GraphSelection:
        """Return the selection. Raises QuestionError for a named port that no destination has."""
        selection = GraphSelection(
            tuple(_node_name(name, sources.namespace) for name in self.callers),
            tuple(_node_name(name, sources.namespace) for name in self.targets),
            None,
            sources.namespace,
            self.tool,
            external=self.external,
            denied=self.denied,
            near=self.near,
            exact=sources.verbose,
        )
        if self.port is None:
            return selection
        return replace(selection, port=port_of(self.port, selection, authority.world))


_selected = record(
    "selected",
    _SelectionOptions,
    click.option(
        "--from",
        "callers",
        multiple=True,
        metavar="SRC",
        shell_complete=complete.sources,
        help="Show only these callers: sa:NS/NAME, pod:NS/NAME, spiffe://.., id:NAME, anonymous, outside, others, "
        "namespace:NS. `*` matches any text.",
    ),
    click.option(
        "--to",
        "targets",
        multiple=True,
        metavar="DST",
        shell_complete=complete.destinations,
        help="Show only these destinations: pod:NS/NAME, service:.., gateway:.., backend:.., namespace:NS. `*` matches "
        "any text.",
    ),
    click.option("--port", metavar="PORT", help="Show only this port: its number, or its name at the destinations."),
    click.option("--tool", metavar="NAME", help="Show only calls of this MCP tool."),
    click.option(
        "--external",
        is_flag=True,
        help="Show only callers from outside: without an identity, or with one of another cluster.",
    ),
    click.option("--denied", is_flag=True, help="Also show pairs without any allowed request."),
    click.option("--all", "near", is_flag=True, help="Also show the access of a pod to itself and from its node."),
)


@click.command(epilog=_EXIT)
@inspecting_options(more_files)
@_selected
@click.option("--by", type=click.Choice([str(by) for by in Grouping]), help="Group callers and destinations.")
@click.option("--why", is_flag=True, help="Show the deciding rules with file and line. JSON and CSV always have them.")
@click.option(
    "--unused", is_flag=True, help="Instead: list rules and policies that can be removed without changing an answer."
)
@output_option(*FORMATS, about="Format of the graph; `html`: a page that needs no other files.")
def graph(sources: Sources, selected: _SelectionOptions, by: str | None, why: bool, unused: bool, output: str) -> None:
    """Show which callers can reach which destinations and ports."""

    def answer(own: Sources) -> None:
        _graph(own, selected, Grouping(by) if by is not None else None, why, unused, output)

    answer_each(sources, answer, output=output)


def _graph(
    sources: Sources, selected: _SelectionOptions, by: Grouping | None, why: bool, unused: bool, output: str
) -> None:
    cluster = cluster_from(sources)
    if unused:
        _show_unused(cluster, output)
        return
    grouping, status = Grouping(by) if by is not None else None, 0
    graphs: list[Graph] = []
    try:
        with no_collection():
            for invention in worlds_of(cluster.authority):
                surveyed = survey(cluster.authority, selected.selection(cluster.authority, sources))
                graphs.append(name_invented(_make(cluster, surveyed, grouping, output, why=why), invention))
                status = max(status, completeness(cluster, surveyed.points), key=_STATUSES.index)
            _show(join(graphs), output, why=why, full=sources.verbose)
    except QuestionError as error:
        note_absence(error, sources, cluster.authority)
        fail([error.diagnostic])
    sys.exit(status)


def _node_name(name: str, namespace: str | None) -> str:
    """Return the name of a node of the graph for a name of kubectl; the default namespace is that of `-n`."""
    kind, colon, rest = ends.canonical(name).partition(":")
    if not colon or kind not in ends.NAMESPACED:
        return name
    if namespace is not None and "/" not in rest:
        rest = f"{namespace}/{rest}"
    return f"{ends.Pod.kind if kind in ends.WORKLOADS else kind}:{rest}"


def _make(cluster: Cluster, surveyed: Survey, by: Grouping | None, output: str, *, why: bool) -> Graph:
    made = make_graph(
        surveyed,
        by,
        why=why or output in ("json", "csv", "html"),
        most=MOST_NODES if output in PICTURES else None,
        pods=output not in ("json", "csv"),
    )
    made = mark_doubts(cluster, made)
    lost = tuple(parts_of(cluster.unconsidered(surveyed.points).matches))
    return replace(made, notes=(*made.notes, *list_notes(cluster, surveyed.points)), left_out=lost)


def _show(made: Graph, output: str, *, why: bool, full: bool) -> None:
    if output == "text":
        if made.is_empty and mark_empty():
            _warn(made.notes)
            return
        if made.left_out:
            print_lines(FROM_WHAT_WAS_READ)
        print_lines(to_text(made, why=why, width=terminal_width(), color=colored(), full=full))
    else:
        emit(render(made, output, why=why))
        preface = [made.preface] if made.preface is not None else []
        _warn([*preface, *made.notes] if output in ("csv", "dot", "mermaid", "svg", "html") else ())


def _warn(notes: Sequence[str]) -> None:
    for note in notes:
        print_lines(f"note: {printable(note)}", err=True)


def _show_unused(cluster: Cluster, output: str) -> None:
    if output not in ("text", "json"):
        raise click.UsageError(f"--unused is a list: -o text or -o json, not {output}")
    with no_collection():
        unused = find_unused(cluster.authority)
    if output == "json":
        emit_json(unused.to_json())
    else:
        print_lines(unused_text(unused, width=terminal_width(), color=colored()))
    sys.exit(completeness(cluster, unused.points))
