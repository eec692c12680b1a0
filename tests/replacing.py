"""Has a mesh that runs decide by another authority, as no file can: what it was read with may be other settings too."""

from __future__ import annotations

from eastgate.authority.authority import Authority
from eastgate.authority.changes import Changes
from eastgate.authority.reading import Manifests
from eastgate.control.events import Enforced, PartlyEnforced
from eastgate.local.mesh import LocalMesh


async def enforce_instead(mesh: LocalMesh, authority: Authority) -> Enforced | PartlyEnforced:
    """Return when every proxy enforces this authority instead."""
    with mesh.plane.lock:
        mesh.enforcement.decide_by(authority)
        mesh.authorizer.live.replace(authority, mesh.authorizer.live.external)
    mesh.is_behind = True
    return await mesh.apply(Changes(Manifests(authority.settings)))
