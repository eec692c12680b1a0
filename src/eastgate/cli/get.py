"""`get`: a list of objects, as rows or as their manifests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from eastgate.basics.collection import no_collection
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cli import complete
from eastgate.cli.environments import answer_each, each_environment
from eastgate.cli.inspecting import cluster_from, inspecting_options, split_paths
from eastgate.cli.options import Sources
from eastgate.cli.output import (
    PARTIAL,
    UNDECIDED,
    colored,
    emit_json,
    emit_yaml,
    mark_absent,
    output_option,
    print_lines,
    terminal_width,
    warn,
)
from eastgate.cli.unconsidered import is_whole, print_left_out, print_notes
from eastgate.cluster.unread import Handling, describe_unread
from eastgate.reading.manifests import Document
from eastgate.reports.get import BadSelector, Listing, UnknownKind, as_list, listing, manifest, parse_selector

_ENVIRONMENTS = ("environment", "environments")


@click.command(
    epilog="Exits with 0; 2 if a name does not exist or an object has errors; 3 if a part could not be read."
)
@click.argument("words", nargs=-1, required=True, metavar="KIND [NAME]...", shell_complete=complete.kinds_and_names)
@click.option("-A", "--all-namespaces", is_flag=True, help="List all namespaces. This is the default without -n.")
@click.option(
    "-l", "--selector", metavar="LABELS", help="List only objects with these labels: app=web,tier in (a, b),!legacy."
)
@output_option("text", "wide", "json", "yaml", "name", about="Format of the list: rows, or the manifests as written.")
@click.option("--no-headers", is_flag=True, help="Print rows without their heading.")
@inspecting_options()
def get(
    words: tuple[str, ...],
    sources: Sources,
    all_namespaces: bool,
    selector: str | None,
    output: str,
    no_headers: bool,
) -> None:
    """List policies, workloads, Services, routes and other objects.

    KIND is policies, workloads, pods, services, gateways, routes, backends, namespaces, environments, or any kind.
    """
    kind, slash, name = words[0].partition("/")
    names, paths = split_paths(words[1:])
    names += [name] if slash else []
    chosen = replace(sources, more=tuple(paths))
    if kind.lower() in _ENVIRONMENTS:
        _get_environments(chosen, names, output, headers=not no_headers)
        return
    wanted = _Wanted(kind, tuple(names), selector, sources.namespace if not all_namespaces else None)
    answer_each(chosen, lambda own: _get(own, wanted, output, headers=not no_headers), output=output)


@dataclass(frozen=True, slots=True)
class _Wanted:
    kind: str
    names: tuple[str, ...]
    selector: str | None
    namespace: str | None


def _get(sources: Sources, asked: _Wanted, output: str, *, headers: bool) -> None:
    kind, names, selector, where = asked.kind, asked.names, asked.selector, asked.namespace
    cluster = cluster_from(sources)
    try:
        wanted = parse_selector(selector) if selector is not None else None
        with no_collection():
            listed = listing(cluster, kind, namespace=where, names=names, selector=wanted)
    except (BadSelector, UnknownKind) as error:
        raise click.UsageError(str(error)) from None
    _show(listed, output, is_single=len(names) == 1, headers=headers)
    missing = [name for name in names if all(name not in (row.name, f"{row.kind}/{row.name}") for row in listed.rows)]
    if missing and is_whole(sources, cluster.authority):
        mark_absent()
    for name in missing:
        print_lines(printable(f"there is no {kind} {name}"), err=True)
    if sources.unread is not Handling.IGNORE:
        print_notes(describe_unread(cluster.authority.unread_objects.objects), err=True)
    left_out = print_left_out(cluster.authority.unread_objects.objects, err=True)
    broken = {
        (rejected.ref.group, rejected.ref.kind, rejected.ref.namespace or "", rejected.ref.name)
        for rejected in cluster.authority.rejected
        if not rejected.is_unfilled
    }
    if missing or any((row.group, row.kind, row.namespace, row.name) in broken for row in listed.rows):
        sys.exit(UNDECIDED)
    if not listed.rows and output in ("text", "wide"):
        print_lines(printable(f"no {kind} found" + (f" in namespace {where}" if where else "")), err=True)
    if left_out:
        sys.exit(PARTIAL)


def _get_environments(sources: Sources, names: Sequence[str], output: str, *, headers: bool) -> None:
    """List the environments themselves, without reading their manifests."""
    from eastgate.reports.get.environments import environment_lines, environments_to_json

    _ = sources.required_paths
    each = each_environment(replace(sources, environments=(*sources.environments, *names)))
    found = list({id(found): found for one in each for found in one.sources.found}.values())
    warn(each[0].diagnostics)
    match output:
        case "json":
            emit_json({"environments": environments_to_json(found)})
        case "yaml":
            emit_yaml({"environments": environments_to_json(found)})
        case "name":
            for environment in found:
                print_lines(printable(environment.name))
        case _:
            wide, width = output == "wide", terminal_width() if output == "text" else None
            for line in environment_lines(found, wide=wide, headers=headers, width=width, color=colored()):
                print_lines(line)
            if not found:
                print_lines("no environments found", err=True)


def _show(listed: Listing, output: str, *, is_single: bool, headers: bool) -> None:
    documents = list({id(document): document for row in listed.rows for document in row.documents}.values())
    match output:
        case "json":
            emit_json(_manifests(documents, is_single=is_single))
        case "yaml":
            emit_yaml(_manifests(documents, is_single=is_single))
        case "name":
            for row in listed.rows:
                print_lines(printable(row.full_name))
        case _:
            width = terminal_width() if output == "text" else None
            for line in listed.text(wide=output == "wide", headers=headers, width=width, color=colored()):
                print_lines(line)


def _manifests(documents: list[Document], *, is_single: bool) -> object:
    """Return a Kubernetes List of the manifests; for one name, the object itself, as kubectl does."""
    return manifest(documents[0]) if is_single and len(documents) == 1 else as_list(documents)
