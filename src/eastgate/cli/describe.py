"""`describe`: everything about one thing."""

from __future__ import annotations

import click

from eastgate.analysis.describing import UnknownKind
from eastgate.analysis.describing import describe as described
from eastgate.cli import complete
from eastgate.cli.inspecting import cluster_from, namespace_option, split_paths
from eastgate.cli.options import inspecting_options, output_option
from eastgate.cli.output import colored, emit_json, fail, say, terminal_width
from eastgate.collection import no_collection
from eastgate.printable import printable
from eastgate.questions import QuestionError

__all__ = ["describe"]


@click.command(epilog="Exits with 0, or with 2 if there is no such thing or a manifest is broken.")
@click.argument("words", nargs=-1, required=True, metavar="KIND [NAME]", shell_complete=complete.things)
@namespace_option
@inspecting_options
@output_option
def describe(
    words: tuple[str, ...], files: tuple[str, ...], namespace: str | None, output: str, **options: object
) -> None:
    """What affects a thing, and who may reach it.

    KIND is pod, service, gateway, route, backend, namespace, policy, or the kind of a policy; KIND/NAME is taken too.
    """
    kind, name, paths = _subject(words)
    cluster = cluster_from((*files, *paths), {**options, "namespace": namespace}, output)
    try:
        with no_collection():
            found = described(cluster, kind, name, namespace)
    except UnknownKind as error:
        raise click.UsageError(str(error)) from None
    except QuestionError as error:
        fail([error.diagnostic], output)
    if output == "json":
        told = [one.to_json() for one in found]
        emit_json(told[0] if len(told) == 1 else {"items": told})
    else:
        color = colored()
        texts = ["\n".join(one.lines(color=color, width=terminal_width())) for one in found]
        say("\n\n".join(texts) if texts else printable(f"there is no {kind} in the manifests"))


def _subject(words: tuple[str, ...]) -> tuple[str, str | None, list[str]]:
    """Kind, name and paths: `pod cart PATH...` or `pod/cart PATH...`."""
    kind, slash, name = words[0].partition("/")
    if slash:
        return kind, name, list(words[1:])
    if len(words) == 1:
        return kind, None, []
    more, paths = split_paths(words[2:])
    if more:
        raise click.UsageError(f"one name at a time: what is `{more[0]}`? There is no such file either.")
    return kind, words[1], paths
