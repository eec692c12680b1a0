"""`graph`: who can reach whom."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from eastgate.authority.questions import QuestionError, ends
from eastgate.basics.collection import no_collection
from eastgate.cli import complete
from eastgate.cli.inspecting import cluster_from, completeness, namespace_option
from eastgate.cli.options import inspecting_options, strict_option
from eastgate.cli.output import colored, emit, emit_json, fail, say, terminal_width
from eastgate.cli.unconsidered import unread_option
from eastgate.reports.cluster import Cluster
from eastgate.reports.graph import FORMATS, GraphSelection, Grouping, Survey, make_graph, render, survey
from eastgate.reports.graph.making import MOST_NODES
from eastgate.reports.graph.notes import list_notes, mark_doubts
from eastgate.reports.graph.rendering import PICTURES
from eastgate.reports.graph.selection import port_of
from eastgate.reports.graph.text import to_text
from eastgate.reports.graph.unused import find_unused, unused_text

_EXIT = (
    "Exits with 0, with 2 if a caller or destination is not there or a policy that is about one is broken, "
    "or with 3 if what is not read could change who may reach what."
)


@click.command(epilog=_EXIT)
@click.argument("more_files", nargs=-1, metavar="[PATH]...", type=click.Path(allow_dash=True))
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="SRC",
    shell_complete=complete.sources,
    help="Only these callers: sa:NS/NAME, pod:NS/NAME, spiffe://.., id:NAME, anonymous, outside, others, namespace:NS; "
    "`*` stands for anything. May be repeated.",
)
@click.option(
    "--to",
    "targets",
    multiple=True,
    metavar="DST",
    shell_complete=complete.destinations,
    help="Only these destinations: pod:NS/NAME, service:.., gateway:.., backend:.., namespace:NS; `*` likewise.",
)
@click.option("--port", metavar="PORT", help="Only this port: its number, or its name at the destinations.")
@namespace_option
@click.option("--tool", metavar="NAME", help="Only calls of this MCP tool.")
@click.option("--external", is_flag=True, help="Only what can come from outside: no identity, or none of this cluster.")
@click.option("--denied", is_flag=True, help="Also pairs of which nothing is allowed.")
@click.option("--all", "near", is_flag=True, help="Also the access of a pod to itself and from its node.")
@click.option("--by", type=click.Choice([str(by) for by in Grouping]), help="Put callers and destinations together.")
@click.option("--why", is_flag=True, help="Say which rules decide, and where they are written; JSON and CSV always do.")
@click.option("--unused", is_flag=True, help="Instead: the rules and policies without which no answer changes.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Form of the answer; `html` is a page that needs nothing else.",
)
@inspecting_options
@strict_option
@unread_option
def graph(
    more_files: tuple[str, ...],
    files: tuple[str, ...],
    sources: tuple[str, ...],
    targets: tuple[str, ...],
    output: str,
    **options: object,
) -> None:
    """Show who can reach whom, and on which ports."""
    form = "json" if output == "json" else "text"
    cluster = cluster_from((*files, *more_files), options, form)
    if options["unused"]:
        _show_unused(cluster, output)
        return
    port, namespace, tool, by = options["port"], options["namespace"], options["tool"], options["by"]
    namespace = namespace if isinstance(namespace, str) else None
    selection = GraphSelection(
        tuple(_node_name(name, namespace) for name in sources),
        tuple(_node_name(name, namespace) for name in targets),
        None,
        namespace,
        tool if isinstance(tool, str) else None,
        external=bool(options["external"]),
        denied=bool(options["denied"]),
        near=bool(options["near"]),
        exact=bool(options["verbose"]),
    )
    try:
        with no_collection():
            if isinstance(port, str):
                selection = replace(selection, port=port_of(port, selection, cluster.authority.world))
            surveyed = survey(cluster.authority, selection)
            _show(cluster, surveyed, Grouping(by) if isinstance(by, str) else None, output, why=bool(options["why"]))
    except QuestionError as error:
        fail([error.diagnostic], form)
    sys.exit(completeness(cluster, surveyed.points))


def _node_name(name: str, namespace: str | None) -> str:
    """Return a name as graphs have it, for the names that kubectl takes; without a namespace it has that of `-n`."""
    kind, colon, rest = ends.canonical(name).partition(":")
    if not colon or kind not in ends.NAMESPACED:
        return name
    if namespace is not None and "/" not in rest:
        rest = f"{namespace}/{rest}"
    return f"{ends.Pod.kind if kind in ends.WORKLOADS else kind}:{rest}"


def _show(cluster: Cluster, surveyed: Survey, by: Grouping | None, output: str, *, why: bool) -> None:
    made = make_graph(
        surveyed,
        by,
        why=why or output in ("json", "csv", "html"),
        most=MOST_NODES if output in PICTURES else None,
        pods=output not in ("json", "csv"),
    )
    made = mark_doubts(cluster, made)
    made = replace(made, notes=(*made.notes, *list_notes(cluster, surveyed.points)))
    if output == "text":
        is_full = surveyed.selection.exact
        say(to_text(made, why=why, width=terminal_width(), color=colored(), full=is_full))
    else:
        emit(render(made, output, why=why))
        _warn(made.notes if output in ("csv", "dot", "mermaid", "svg", "html") else ())


def _warn(notes: Sequence[str]) -> None:
    for note in notes:
        say(f"note: {note}", err=True)


def _show_unused(cluster: Cluster, output: str) -> None:
    if output not in ("text", "json"):
        raise click.UsageError(f"--unused is a list: -o text or -o json, not {output}")
    with no_collection():
        unused = find_unused(cluster.authority)
    if output == "json":
        emit_json(unused.to_json())
    else:
        say(unused_text(unused, width=terminal_width(), color=colored()))
    sys.exit(completeness(cluster, unused.points))
