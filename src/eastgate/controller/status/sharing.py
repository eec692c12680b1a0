"""The kinds of other APIs whose own controllers write their status, wherever these run."""

from __future__ import annotations

from typing import Final

from eastgate.dialects import registered
from eastgate.reading.kubernetes import Connection, Resource

_LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")


async def unwritten_groups(connection: Connection) -> frozenset[str]:
    """Return the groups of kinds whose status no controller of their own API writes.

    A controller that runs has a Lease, in any namespace. Raises ApiError, UnreachableError.
    """
    groups: set[str] = set()
    for group, lease in {(kind.group, kind.status_lease) for kind in registered().policies.values()}:
        if lease is not None:
            leases, _ = await connection.list(_LEASES, field_selector=f"metadata.name={lease}")
            groups |= set() if leases else {group}
    return frozenset(groups)
