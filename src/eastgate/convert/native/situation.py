"""The input of a plan: policies of GEP-3779, native policies of others, and the cluster that both govern."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from eastgate import dialects
from eastgate.authority.authority import Authority
from eastgate.authority.reading import Fault, Manifests
from eastgate.basics.diagnostics import Reporter
from eastgate.basics.records import dataclass
from eastgate.cluster import Workload, World, WorldObject
from eastgate.cluster.resources import UNWRITABLE
from eastgate.convert.model import Item
from eastgate.convert.native.model import Json, NativeMesh, PolicyOwner, Unwritable, is_ours, object_id
from eastgate.dialects import Policy, gep3779, istio, linkerd
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import Connection, Resource
from eastgate.reading.manifests import Document, read_text
from eastgate.reading.manifests.document import content_of
from eastgate.settings import Settings

# Evidence that an installed mesh enforces its policies: a serving control plane, and proxies in pods.
#
# Definitions alone enforce nothing, and requests to a pod without a proxy bypass every policy.


_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", namespaced=True)
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_PROXIES: Final = {NativeMesh.ISTIO: "istio-proxy", NativeMesh.LINKERD: "linkerd-proxy"}
_REDIRECTION: Final = ("ambient.istio.io/redirection", "enabled")  # Istio writes it when ztunnel has taken over a pod


def has_proxy(workload: Workload, mesh: NativeMesh) -> bool:
    """Return whether a workload has a proxy of the mesh. Outside of a cluster, every workload counts as having one."""
    if not workload.is_pod or _PROXIES[mesh] in workload.mesh_proxies:
        return True
    return mesh is NativeMesh.ISTIO and workload.annotations.get(_REDIRECTION[0]) == _REDIRECTION[1]


def control_plane_of(mesh: NativeMesh, settings: Settings) -> str:
    """Return what `is_serving` looks for, for use in a sentence."""
    if mesh is NativeMesh.LINKERD:
        return "Service linkerd-policy"
    return f"Service istiod in {settings.section(IstioSettings).root_namespace}"


async def is_serving(connection: Connection, mesh: NativeMesh, settings: Settings) -> bool:
    """Return whether the control plane of a mesh has a ready endpoint. Raises ApiError, UnreachableError.

    A revision of Istio has its own Service: `istiod-<revision>`.
    """
    if mesh is NativeMesh.LINKERD:
        slices, _ = await connection.list(_SLICES, label_selector=f"{_SERVICE_NAME}=linkerd-policy")
        return _has_ready(slices)
    slices, _ = await connection.list(_SLICES, settings.section(IstioSettings).root_namespace)
    return _has_ready(each for each in slices if _is_istiod((each["metadata"].get("labels") or {}).get(_SERVICE_NAME)))


def _is_istiod(service: str | None) -> bool:
    return service is not None and (service == "istiod" or service.startswith("istiod-"))


def _has_ready(slices: Iterable[dict[str, Any]]) -> bool:
    """Return whether any endpoint is ready. As in the API, an endpoint without the condition is ready."""
    endpoints = (endpoint for each in slices for endpoint in each.get("endpoints") or ())
    return any((endpoint.get("conditions") or {}).get("ready") is not False for endpoint in endpoints)


_DIALECTS: Mapping[NativeMesh, Any] = {NativeMesh.ISTIO: istio.DIALECT, NativeMesh.LINKERD: linkerd.DIALECT}
_GEP_KINDS = frozenset((kind.group, kind.version, kind.kind) for kind in gep3779.DIALECT.kinds)


def is_source(manifest: Mapping[str, Any]) -> bool:
    """Return whether an object is a policy of GEP-3779, which native policies are written for."""
    group, version = str(manifest.get("apiVersion")).rpartition("/")[::2]
    return (group, version, manifest.get("kind")) in _GEP_KINDS


def is_copy(manifest: Mapping[str, Any], mesh: NativeMesh | None) -> bool:
    """Return whether an object is a native policy with exactly the decisions of its source policies.

    This is never true for Linkerd: a policy of Linkerd on a pod also denies every unauthorized request.
    """
    return mesh is NativeMesh.ISTIO and object_id(manifest)[0] == istio.GROUP and is_ours(manifest, ())


@dataclass(frozen=True, slots=True, eq=False)
class SourcePolicy:
    """A policy of GEP-3779 as it was read. If it has errors, `policy` is None and `closing` closes its targets."""

    owner: PolicyOwner
    document: Document
    policy: gep3779.Policy | None
    closing: Policy
    fault: Fault | None = None

    @property
    def ref(self) -> PolicyRef:
        return self.closing.ref

    @property
    def audits(self) -> bool:
        """Return whether the policy is in audit mode, and so decides nothing."""
        return self.policy is not None and self.policy.audit

    @property
    def unwritable(self) -> Unwritable | None:
        """Return how its annotation treats its pods; None without a valid annotation."""
        chosen = (_metadata(self.document).get("annotations") or {}).get(UNWRITABLE)
        return Unwritable(chosen) if chosen in list(Unwritable) else None


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """The input of a plan.

    `foreign` are the native policies that Eastgate did not write, including those with errors.
    """

    settings: Settings
    mesh: NativeMesh
    objects: Sequence[WorldObject]
    world: World
    sources: Sequence[SourcePolicy]
    foreign: Sequence[Document]
    foreign_items: Sequence[Item]
    taken: frozenset[tuple[str, str, str, str]]

    @property
    def namespaces(self) -> list[str]:
        """Return the known namespaces: declared, in use, or with a policy."""
        homes = {source.ref.namespace for source in self.sources if source.ref.namespace is not None}
        return sorted({*self.world.namespaces, *self.world.namespaces_in_use(), *homes})

    def names_taken(self, group: str, kind: str, namespace: str) -> set[str]:
        """Return the names of objects of a kind in a namespace that Eastgate did not write."""
        return {entry[3] for entry in self.taken if entry[:3] == (group, kind, namespace)}


def situation_of(cluster: Manifests | Authority, mesh: NativeMesh, put: Json | None = None) -> Situation:
    """Sort the documents.

    Raises ValueError if a policy of GEP-3779 has no UID, because every object of an API server has one.

    With `put`, return the situation of the namespace of that object, as if the object were stored.
    """
    settings = cluster.settings
    if isinstance(cluster, Authority):
        documents, objects = list(_documents_of_authority(cluster)), list(cluster.world.objects.values())
    else:
        documents, objects = list(_documents(cluster)), list(cluster.objects)
    given: list[Document | Json] = []
    if put is not None:
        home = put["metadata"].get("namespace")
        documents = [document for document in documents if object_id(_content(document)) != object_id(put)]
        documents = [document for document in documents if home is None or _home(document) in (None, home)]
        objects = [declared for declared in objects if home is None or declared.id.namespace in ("", home)]
        given.append(put)
    own_kinds = {(kind.group, kind.version, kind.kind) for kind in _DIALECTS[mesh].kinds}
    written = [document for document in documents if _type_of(document) in _GEP_KINDS]
    uids = {str(_metadata(document).get("uid")) for document in written}
    native = [document for document in documents if _type_of(document) in own_kinds]
    foreign = [document for document in native if not is_ours(_content(document), uids)]
    read = read_documents([*written, *given, *foreign], settings)
    return Situation(
        settings,
        mesh,
        objects,
        World.of(objects),
        sorted(_sources(read), key=lambda source: source.owner.path),
        foreign,
        [*_items(read)],
        frozenset(object_id(_content(document)) for document in foreign),
    )


def read_documents(documents: Iterable[Document | Json], settings: Settings) -> Manifests:
    """Read policies again as one text, so that each span in it belongs to one document."""
    contents = [each if isinstance(each, dict) else _content(each) for each in documents]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": contents}, indent=1)
    reading = read_text("native.json", text, positioned=dialects.reads, namespace=settings.namespace)
    manifests = Manifests(settings, reporter=Reporter())
    for document in reading.documents:
        manifests.add(document)
    manifests.settle()
    return manifests


def _documents(manifests: Manifests) -> Iterator[Document]:
    for policy in manifests.policies:
        document = manifests.document_of(policy)
        if document is not None:
            yield document
    yield from (fault.document for fault in manifests.closing if dialects.is_policy(fault.document))


def _documents_of_authority(authority: Authority) -> Iterator[Document]:
    for policy in authority.policies:
        document = authority.document_of(policy.ref)
        if document is not None and dialects.is_policy(document):
            yield document


def _sources(read: Manifests) -> Iterator[SourcePolicy]:
    for policy in read.policies:
        document = read.document_of(policy)
        if isinstance(policy, gep3779.Policy) and document is not None:
            yield SourcePolicy(_owner(document, policy.ref), document, policy, policy)
    for fault in read.closing:
        if _type_of(fault.document) in _GEP_KINDS:
            closing = fault.policy
            yield SourcePolicy(_owner(fault.document, closing.ref), fault.document, None, closing, fault)


def _items(read: Manifests) -> Iterator[Item]:
    for policy in read.policies:
        document = read.document_of(policy)
        if not isinstance(policy, gep3779.Policy) and document is not None:
            yield Item(policy, document)


def _owner(document: Document, ref: PolicyRef) -> PolicyOwner:
    uid = _metadata(document).get("uid")
    if not isinstance(uid, str) or not uid:
        raise ValueError(f"{ref} has no UID: only policies of an API server can own native objects")
    return PolicyOwner(uid, document.api_version, document.kind, ref.namespace, ref.name)


def _type_of(document: Document) -> tuple[str, str, str]:
    return document.group, document.version, document.kind


def _content(document: Document) -> Json:
    return cast("Json", content_of(document))


def _home(document: Document) -> str | None:
    return _metadata(document).get("namespace")


def _metadata(document: Document) -> Json:
    metadata = _content(document).get("metadata")
    return metadata if isinstance(metadata, dict) else {}
