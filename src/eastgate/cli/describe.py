"""`describe`: everything about one object."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import NoReturn

import click

from eastgate.authority.questions import QuestionError
from eastgate.basics.collection import no_collection
from eastgate.basics.diagnostics.printable import printable
from eastgate.cli import complete
from eastgate.cli.environments import answer_each
from eastgate.cli.inspecting import cluster_from, completeness, inspecting_options, split_paths
from eastgate.cli.options import Sources
from eastgate.cli.output import FROM_WHAT_WAS_READ, colored, emit_json, fail, output_option, print_lines, terminal_width
from eastgate.cli.unconsidered import note_absence
from eastgate.cluster.unread import parts_of
from eastgate.reports.describe import UnknownKind
from eastgate.reports.describe import describe as described

_EXIT = (
    "Exits with 0; 2 if the object does not exist or a policy about it has errors; "
    "3 if Eastgate did not read an object that could change the callers that may reach it."
)


@click.command(epilog=_EXIT)
@click.argument("words", nargs=-1, required=True, metavar="KIND [NAME]", shell_complete=complete.kinds_and_names)
@inspecting_options()
@output_option("text", "json", about="Format of the answer.")
def describe(words: tuple[str, ...], sources: Sources, output: str) -> None:
    """Show the policies about an object, and its allowed callers.

    KIND is pod, service, gateway, route, backend, namespace, policy, or the kind of a policy. KIND/NAME works too.
    """
    kind, name, paths = _subject(words)
    chosen = replace(sources, more=tuple(paths))
    answer_each(chosen, lambda own: _describe(own, kind, name, output), output=output)


def _describe(sources: Sources, kind: str, name: str | None, output: str) -> NoReturn:
    cluster = cluster_from(sources)
    try:
        with no_collection():
            descriptions = described(cluster, kind, name, sources.namespace)
    except UnknownKind as error:
        raise click.UsageError(str(error)) from None
    except QuestionError as error:
        note_absence(error, sources, cluster.authority)
        fail([error.diagnostic], cluster.authority.unread_objects.objects)
    points = [point for description in descriptions for point in description.points]
    lost = parts_of(cluster.unconsidered(points).matches)
    if output == "json":
        items = [description.to_json() for description in descriptions]
        whole = items[0] if len(items) == 1 else {"items": items}
        left_out = {"complete": False, "leftOut": [part.to_json() for part in lost]} if lost else {}
        emit_json({**whole, **left_out})
    else:
        if lost:
            print_lines(FROM_WHAT_WAS_READ)
        color = colored()
        width = terminal_width()
        texts = ["\n".join(description.lines(color=color, width=width)) for description in descriptions]
        print_lines("\n\n".join(texts) if texts else printable(f"there is no {kind} in the manifests"))
    sys.exit(completeness(cluster, points))


def _subject(words: tuple[str, ...]) -> tuple[str, str | None, list[str]]:
    """Split words into kind, name and paths: `pod cart PATH...` or `pod/cart PATH...`."""
    kind, slash, name = words[0].partition("/")
    if slash:
        return kind, name, list(words[1:])
    if len(words) == 1:
        return kind, None, []
    more, paths = split_paths(words[2:])
    if more:
        raise click.UsageError(f"one name at a time: `{more[0]}` is a second one, and no file")
    return kind, words[1], paths
