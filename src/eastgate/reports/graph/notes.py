"""What a graph could not consider: objects of unread kinds, policies with errors, labels that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster.points import Point
from eastgate.reports.cluster import Cluster
from eastgate.unread import list_unconsidered

__all__ = ["list_notes"]


def list_notes(cluster: Cluster, points: Sequence[Point]) -> Iterator[str]:
    """Yield a line for each thing that could make an answer about some points another one."""
    authority = cluster.authority
    for policy in authority.rejected_at(points):
        yield f"{policy.ref} cannot be read: what it targets is shown as closed"
    for line in list_unconsidered(cluster.unconsidered(points), authority.unread):
        yield f"not considered: {line}"
    uncertain = {policy.ref: point for point in points for policy in authority.engine.uncertain(point)}
    for ref, point in uncertain.items():
        yield f"{ref} selects by a label that a cluster adds: it is taken not to target {point}"
