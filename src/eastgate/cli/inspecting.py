"""Shared parts of `describe`, `get` and `graph`: their arguments, and the cluster that they show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from eastgate.authority.reading import sort_reading
from eastgate.cli.options import Sources, cluster_options, source_options, strict_option
from eastgate.cli.output import ALLOWED, PARTIAL, UNDECIDED, Decorator, left_out, print_lines, warn
from eastgate.cluster.points import Point
from eastgate.cluster.unread import Standing, standing
from eastgate.reports.cluster import Cluster

_namespace = click.option(
    "-n",
    "--namespace",
    metavar="NS",
    help="Show only this namespace, which is also that of objects without one. Default: all.",
)


def inspecting_options(*others: Decorator) -> Decorator:
    """Add the options of a command that shows objects."""
    return source_options(*cluster_options, strict_option, *others, namespace=_namespace)


def split_paths(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate names from the paths that follow `-f PATH` without their own -f: an existing file is a path."""
    paths = [word for word in words if word == "-" or Path(word).exists()]
    return [word for word in words if word not in paths], paths


def completeness(cluster: Cluster, points: Sequence[Point]) -> int:
    """Return the exit status of a report about some points: whether it is complete."""
    authority = cluster.authority
    stands = standing(cluster.unconsidered(points), authority.unread, allowed=True)
    rejected = any(not policy.is_unfilled for policy in cluster.rejected_at(points))
    if rejected or stands is Standing.UNDECIDED:
        return UNDECIDED
    return PARTIAL if stands is Standing.PARTIAL else ALLOWED


def cluster_from(sources: Sources) -> Cluster:
    """Read the manifests. If they have errors, print all of them and exit."""
    _ = sources.required_paths
    settings = sources.settings()
    reading = sources.documents(settings)
    authority = sources.authority_on(sort_reading(reading, settings))
    cluster = Cluster(authority, reading.documents, verbose=sources.verbose)
    if sources.verbose:
        summary = f"read {len(reading.documents)} objects, {len(cluster.policies)} of them policies"
        print_lines(summary + left_out(reading.excluded), err=True)
    errors = (error for rejected in authority.rejected for error in rejected.errors)
    warn([*authority.warnings, *authority.notices(), *errors])
    return cluster
