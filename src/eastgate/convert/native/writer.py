"""Writes the native policies of a plan to an API server."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eastgate.basics.records import dataclass
from eastgate.convert.native.model import MANAGED_BY, MANAGER, SOURCE_UID, Json, NativeMesh, NativePlan, object_id
from eastgate.convert.native.reconciling import NativeStep, NativeStepKind, steps
from eastgate.dialects import istio, linkerd
from eastgate.reading.kubernetes import ApiError, Connection, Resource

GROUPS = {NativeMesh.ISTIO: istio.GROUP, NativeMesh.LINKERD: linkerd.GROUP}
"""The API group of the policies of each mesh."""

RESOURCES = (
    Resource(istio.GROUP, "v1", "authorizationpolicies", "AuthorizationPolicy", namespaced=True),
    Resource(linkerd.GROUP, "v1beta3", "servers", "Server", namespaced=True),
    Resource(linkerd.GROUP, "v1alpha1", "meshtlsauthentications", "MeshTLSAuthentication", namespaced=True),
    Resource(linkerd.GROUP, "v1beta3", "httproutes", "HTTPRoute", namespaced=True),
    Resource(linkerd.GROUP, "v1alpha1", "authorizationpolicies", "AuthorizationPolicy", namespaced=True),
)
"""The kinds that are written."""

_OURS = f"{MANAGED_BY}={MANAGER},{SOURCE_UID}"


@dataclass(frozen=True, slots=True)
class WriteFailure:
    """A step that the API server refused. The later steps in that namespace were not tried."""

    step: NativeStep
    error: ApiError


class NativeWriter:
    """Makes the native objects of a cluster equal to those of a plan.

    It never changes an object that it did not write.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def write(self, plan: NativePlan) -> list[WriteFailure]:
        """Take the steps to the objects of a plan, and return the steps that failed.

        Objects that were written for the other mesh are deleted. Raises ApiError if objects cannot be listed.
        """
        return await self._take(steps(await self.existing(), plan.objects, plan.sources))

    async def remove(self, sources: Collection[str] = ()) -> list[WriteFailure]:
        """Delete all objects that were written. `sources` are the UIDs of existing policies."""
        return await self._take(steps(await self.existing(), (), sources))

    async def existing(self) -> list[Json]:
        """Return the objects with Eastgate's labels. Kinds that the cluster does not have are skipped."""
        objects: list[Json] = []
        for resource in RESOURCES:
            try:
                items, _ = await self._connection.list(resource, label_selector=_OURS)
            except ApiError as error:
                if not error.is_missing:
                    raise
                continue
            typed = {"apiVersion": resource.api_version, "kind": resource.kind}
            objects += [{**item, **typed} for item in items]
        return objects

    async def _take(self, planned: Sequence[NativeStep]) -> list[WriteFailure]:
        failures: list[WriteFailure] = []
        for step in planned:
            if any(failure.step.namespace == step.namespace for failure in failures):
                continue  # a step that opens must not be taken without the steps that close
            try:
                await self._step(step)
            except ApiError as error:
                failures.append(WriteFailure(step, error))
        return failures

    async def _step(self, step: NativeStep) -> None:
        resource = _resource_of(step.manifest)
        _, _, namespace, name = object_id(step.manifest)
        present = step.existing["metadata"] if step.existing is not None else {}
        match step.kind:
            case NativeStepKind.CREATE:
                await self._connection.create(resource, step.manifest)
            case NativeStepKind.REPLACE:
                version = {"resourceVersion": present["resourceVersion"], "uid": present["uid"]}
                metadata = {**step.manifest["metadata"], **version}
                await self._connection.replace(resource, {**step.manifest, "metadata": metadata})
            case NativeStepKind.DELETE:
                try:
                    await self._connection.delete(resource, name, namespace, uid=present["uid"])
                except ApiError as error:
                    if not error.is_missing:  # the garbage collector deleted it with its owner
                        raise


def _resource_of(manifest: Json) -> Resource:
    group, kind, *_ = object_id(manifest)
    return next(resource for resource in RESOURCES if (resource.group, resource.kind) == (group, kind))
