"""Gives a running mesh other manifests, as a saved file does: by the changes between them and those in force."""

from __future__ import annotations

from eastgate.api.authority import Authority
from eastgate.api.changes import Changes, changes_between
from eastgate.api.reading import Fault, FaultReason, Manifests
from eastgate.control.events import Enforced, PartlyEnforced
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.mesh.mesh import LocalMesh

__all__ = ["changes_to", "enforce", "manifests_of"]


async def enforce(mesh: LocalMesh, authority: Authority) -> Enforced | PartlyEnforced:
    """Have a mesh enforce what another authority decides by."""
    if authority.settings != mesh.authority.settings or authority.keys is not mesh.authority.keys:
        return await mesh.replace(authority)
    return await mesh.apply(changes_to(mesh.authority, authority))


def changes_to(before: Authority, after: Authority) -> Changes:
    """The changes after which one authority decides as another."""
    return changes_between(manifests_of(before), manifests_of(after))


def manifests_of(authority: Authority) -> Manifests:
    """The manifests that an authority decides by."""
    objects = [*authority.world.objects.values()]
    manifests = Manifests(authority.settings, objects, unread=authority.unread_objects)
    manifests.reporter.diagnostics.extend(authority.warnings)
    for policy in authority.policies:
        document = authority.document_of(policy.ref)
        if not isinstance(policy, RejectedPolicy):
            manifests.add_policy(policy, document)
        elif document is not None:
            manifests.faults.append(Fault(document, FaultReason.POLICY, [*policy.errors], authority.settings))
    return manifests
