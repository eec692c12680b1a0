"""What `describe`, `get` and `graph` share: the words of their command lines, and the cluster that they look at."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from eastgate.authority.reading import ManifestError, read_documents
from eastgate.cli.options import left_out, settings_from, with_default_namespace
from eastgate.cli.output import ALLOWED, PARTIAL, UNDECIDED, fail, say, warn
from eastgate.cli.progress import progress
from eastgate.cli.unconsidered import handling_of
from eastgate.cluster.points import Point
from eastgate.cluster.unread import Standing, standing
from eastgate.reading.manifests import Bounds
from eastgate.reports.cluster import Cluster

namespace_option = click.option(
    "-n",
    "--namespace",
    metavar="NS",
    help="Show only this namespace. It is also the namespace of objects that do not name one. Default: all.",
)


def split_paths(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split names from the paths that follow `-f PATH` without an -f of their own: what exists is a path."""
    paths = [word for word in words if word == "-" or Path(word).exists()]
    return [word for word in words if word not in paths], paths


def completeness(cluster: Cluster, points: Sequence[Point]) -> int:
    """Return the exit status of what is said about some points: whether it is complete."""
    authority = cluster.authority
    stands = standing(cluster.unconsidered(points), authority.unread, allowed=True)
    if authority.rejected_at(points) or stands is Standing.UNDECIDED:
        return UNDECIDED
    return PARTIAL if stands is Standing.PARTIAL else ALLOWED


def cluster_from(files: Sequence[str | os.PathLike[str]], options: dict[str, object], output: str) -> Cluster:
    """Read the manifests, or say everything that is wrong with them and exit."""
    if not files:
        raise click.UsageError("no manifests: give files or folders with -f, or --cluster")
    config, pairs_given, exclude = options["config"], options["settings"], options["exclude"]
    assert isinstance(pairs_given, tuple) and isinstance(exclude, tuple)  # noqa: S101, PT018 - click makes it so
    namespace = options["namespace"]
    pairs_given = with_default_namespace(pairs_given, namespace if isinstance(namespace, str) else None)
    settings = settings_from(pairs_given, config if isinstance(config, str) else None, output)
    with progress("reading manifests") as on_file:
        bounds = Bounds.of(files, follow=bool(options["follow"]), exclude=exclude)
        reading = read_documents(files, settings, stdin=sys.stdin.buffer, on_file=on_file, bounds=bounds)
    try:
        cluster = Cluster.of(
            reading.documents,
            settings,
            reading.reporter,
            reading.twice,
            strict=bool(options["strict"]),
            unread=handling_of(options["unread"]),
            verbose=bool(options["verbose"]),
        )
    except ManifestError:
        fail(reading.reporter, output)
    if options["verbose"]:
        summary = f"read {len(reading.documents)} objects, {len(cluster.policies)} of them policies"
        say(summary + left_out(reading.excluded), err=True)
    authority = cluster.authority
    errors = (error for rejected in authority.rejected for error in rejected.errors)
    warn([*authority.warnings, *authority.notices(), *errors])
    return cluster
