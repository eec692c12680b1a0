"""What lint says about one thing. Lint is a package of its own, and not needed to describe anything."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module

from eastgate.analysis.cluster import Cluster, Finding
from eastgate.analysis.describing.model import Field, some

__all__ = ["findings"]

_MOST_WORKLOADS = 2_000  # lint looks at all of them; with more, whoever wants to know runs it once


def findings(cluster: Cluster, subjects: Collection[str]) -> Field:
    """The findings about any of the subjects: workloads by key, policies and objects as `Kind/namespace/name`."""
    found = [one for one in _all(cluster) if set(one.subjects) & set(subjects)]
    lines = [f"{one.code.id} {one.severity}: {one.message}" for one in found]
    data = [one.to_json() for one in found]
    return some("findings", "Findings", data, lines) if lines else Field("findings", "Findings", data, ())


def _all(cluster: Cluster) -> list[Finding]:
    if cluster.findings is None:
        cluster.findings = _linted(cluster)
    return cluster.findings


def _linted(cluster: Cluster) -> list[Finding]:
    if len(cluster.authority.world.workloads) > _MOST_WORKLOADS:
        return []
    try:
        lint = import_module("eastgate.lint")
    except ImportError:
        return []
    return list(lint.lint(cluster.authority))
