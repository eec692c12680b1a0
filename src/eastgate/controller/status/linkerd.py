"""Whether Linkerd's own policy controller runs in the cluster: then the status of Linkerd's routes is its to write."""

from __future__ import annotations

from typing import Final

from eastgate.reading.kubernetes import Connection, Resource

_LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
_WRITER: Final = "policy-controller-write"  # the Lease of the replica that writes status


async def has_linkerd_controller(connection: Connection) -> bool:
    """Return whether its Lease exists, in any namespace. Raises ApiError, UnreachableError."""
    leases, _ = await connection.list(_LEASES, field_selector=f"metadata.name={_WRITER}")
    return bool(leases)
