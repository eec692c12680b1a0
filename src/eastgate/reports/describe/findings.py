"""The findings of lint about one object."""

from __future__ import annotations

from collections.abc import Collection

from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.model import DescribedField, list_field
from eastgate.reports.lint import Finding, lint

_MOST_WORKLOADS = 2_000  # lint examines all of them; with more, run it by itself


def findings_field(cluster: Cluster, subjects: Collection[str]) -> DescribedField:
    """List the findings about any of the subjects: workloads by key, others as `Kind/namespace/name`."""
    if len(cluster.authority.world.workloads) > _MOST_WORKLOADS:
        lines = [f"not looked for: there are more than {_MOST_WORKLOADS:,} workloads; run eastgate lint"]
        return list_field("findings", "Findings", None, lines)
    about = [finding for finding in _all(cluster) if set(finding.subjects) & set(subjects)]
    lines = [f"{finding.code.id} {finding.severity}: {finding.message}" for finding in about]
    data = [finding.to_json() for finding in about]
    return (
        list_field("findings", "Findings", data, lines) if lines else DescribedField("findings", "Findings", data, ())
    )


def _all(cluster: Cluster) -> list[Finding]:
    if cluster.findings is None:
        cluster.findings = lint(cluster.authority)
    return cluster.findings
