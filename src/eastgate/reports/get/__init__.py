"""Listings: policies with their effects, workloads with their modes, and objects of all other kinds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from eastgate.basics.diagnostics import did_you_mean
from eastgate.cluster import CONTROLLER_KINDS, ROUTE_KINDS, Selector
from eastgate.reports.cluster import Cluster
from eastgate.reports.get import rows
from eastgate.reports.get.manifests import BadSelector, as_list, manifest, parse_selector
from eastgate.reports.get.model import Listed, Listing
from eastgate.reports.kinds import UnknownKind, Word, policy_kinds, word_of

__all__ = [
    "KINDS",
    "BadSelector",
    "Listed",
    "Listing",
    "UnknownKind",
    "as_list",
    "listing",
    "manifest",
    "parse_selector",
]

_BUILDERS: dict[str, Callable[[Cluster, Word], Listing]] = {
    "policy": rows.policies,
    "workload": rows.workloads,
    "pod": rows.workloads,
    "externalworkload": rows.workloads,
    "service": rows.services,
    "gateway": rows.gateways,
    "route": rows.routes,
    **{kind.lower(): rows.routes for kind in ROUTE_KINDS},
    "backend": rows.backends,
    "xbackend": rows.backends,
    "namespace": rows.namespaces,
}
_KNOWN = {kind.lower() for kind in (*CONTROLLER_KINDS, "ReferenceGrant", "Secret", "ServiceAccount")}
KINDS = ("policies", "workloads", "pods", "services", "gateways", "routes", "backends", "namespaces")


def listing(
    cluster: Cluster,
    kind: str,
    *,
    namespace: str | None = None,
    names: Collection[str] = (),
    selector: Selector | None = None,
) -> Listing:
    """List everything of a kind, sorted by namespace and name. Raises UnknownKind."""
    word = word_of(kind)
    builder = _BUILDERS.get(word.kind) or (rows.policies if word.kind in policy_kinds() else rows.objects)
    listed = builder(cluster, word)
    if builder is rows.objects and not listed.rows and word.kind not in _KNOWN:
        raise UnknownKind(_unknown(cluster, kind))
    kept = [
        row
        for row in listed.rows
        if namespace in (None, row.namespace)
        and (not names or row.name in names or f"{row.kind}/{row.name}" in names)
        and (selector is None or selector.matches(row.labels))
    ]
    return replace(listed, rows=sorted(kept, key=lambda row: (row.namespace, row.name, row.kind, row.group)))


def _unknown(cluster: Cluster, kind: str) -> str:
    kinds = {*_BUILDERS, *policy_kinds(), *(document.kind.lower() for document in cluster.documents)}
    near = did_you_mean(word_of(kind).kind, kinds)
    hint = f"did you mean {near}?" if near else f"write {', '.join(KINDS)}, or any kind of the manifests"
    return f"there is no kind `{kind}` here: {hint}"
