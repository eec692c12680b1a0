"""Replaces the authority of a running mesh. Unlike a change of files, this can also change the settings."""

from __future__ import annotations

from eastgate.authority.authority import Authority
from eastgate.authority.changes import Changes
from eastgate.authority.reading import Manifests
from eastgate.control.events import Enforced, PartlyEnforced
from eastgate.local.mesh import LocalMesh


async def enforce_instead(mesh: LocalMesh, authority: Authority) -> Enforced | PartlyEnforced:
    """Replace the authority of a mesh, and wait until every proxy enforces it."""
    with mesh.plane.lock:
        mesh.enforcement.decide_by(authority)
        mesh.authorizer.live.replace(authority, mesh.authorizer.live.external)
    mesh.is_behind = True
    return await mesh.apply(Changes(Manifests(authority.settings)))
