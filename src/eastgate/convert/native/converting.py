"""Native objects for the policies that convert without loss, and the reasons why the others do not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.cluster import PodsAcross
from eastgate.convert import codes
from eastgate.convert.model import Item, Job, Options, Written
from eastgate.convert.native.model import Json, NativeLoss, NativeMesh, PolicyOwner, mark, name_of
from eastgate.convert.native.situation import Situation, SourcePolicy, read_documents
from eastgate.convert.native.targets import pods_of
from eastgate.convert.registry import converters_to
from eastgate.convert.selectors import write_selector
from eastgate.dialects import gep3779, istio, linkerd
from eastgate.dialects.gep3779 import GROUP
from eastgate.dialects.gep3779.model import Action, Policy, Tier
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.document import content_of
from eastgate.settings import Settings

# Converts cluster-wide policies that only deny to policies of each namespace. Istio, too, evaluates every DENY first.


def goes_first(source: SourcePolicy, situation: Situation) -> bool:
    """Return whether a policy of the Admin tier denies before any other policy can allow or pass."""
    policy = source.policy
    if situation.mesh is not NativeMesh.ISTIO or policy is None or policy.tier is not Tier.ADMIN:
        return False
    if policy.action is not Action.DENY or policy.audit:
        return False
    others = (other.policy for other in situation.sources if other.policy is not None)
    return not any(_is_before(other, policy) for other in others)


def _is_before(other: Policy, policy: Policy) -> bool:
    is_rival = other.tier is Tier.ADMIN and other.level is policy.level and not other.audit
    return is_rival and other.action is not Action.DENY and other.priority < policy.priority


def in_namespaces(source: SourcePolicy, situation: Situation) -> Iterator[Json]:
    """Yield a policy with the same rules for each namespace but the root namespace, where it would apply everywhere."""
    content = content_of(source.document)
    assert isinstance(content, Mapping)  # noqa: S101 - an object is a mapping
    spec = content["spec"]
    assert isinstance(spec, Mapping)  # noqa: S101 - it was read
    said = {key: spec[key] for key in ("action", "enforcementLevel", "rules") if key in spec}
    root = situation.settings.section(IstioSettings).root_namespace
    for target in source.closing.targets:
        assert isinstance(target, PodsAcross)  # noqa: S101 - it is cluster-wide
        for pods in pods_of(target, situation):
            if pods.namespace != root:
                yield {
                    "apiVersion": f"{GROUP}/v1alpha2",
                    "kind": "AuthorizationPolicy",
                    "metadata": {"name": source.ref.name, "namespace": pods.namespace},
                    "spec": {"targetRefs": [{"kind": "Pod", "selector": write_selector(pods.selector)}], **said},
                }


_FOLLOWED = frozenset({codes.SERVICE_SELECTOR.id})
"""Losses that do not count, because the conversion is repeated when the selector of a Service changes."""

_LINKERD_ORDER = ("Server", "MeshTLSAuthentication", "HTTPRoute", "AuthorizationPolicy")
_PROXY_PROTOCOL = {"proxyProtocol": "unknown"}  # the default that an API server adds


@dataclass(frozen=True, slots=True, eq=False)
class NativeObject:
    """A marked object, and its source policies."""

    manifest: Json
    owners: tuple[PolicyOwner, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SourceConversion:
    """The objects of the policies that convert, and the losses of those that do not, by UID."""

    objects: tuple[NativeObject, ...]
    converted: tuple[SourcePolicy, ...]
    losses: Mapping[str, tuple[NativeLoss, ...]]


def convert_sources(situation: Situation, dropped: Collection[str], options: Options) -> SourceConversion:
    """Convert the policies except those with dropped UIDs.

    A policy with losses is left out, and the conversion is repeated without it until nothing is lost.
    """
    losses: dict[str, tuple[NativeLoss, ...]] = {}
    for source in situation.sources:
        if source.fault is not None:
            losses[source.owner.uid] = tuple(map(_loss, source.fault.errors))
    everywhere = [source for source in situation.sources if goes_first(source, situation)]
    while True:
        sources = [s for s in situation.sources if s.owner.uid not in losses and s.owner.uid not in dropped]
        here = [source for source in sources if source not in everywhere]
        items = [Item(source.policy, source.document) for source in here if source.policy is not None]
        job = _run(items, situation, options, situation.settings)
        lost = _losses({source.owner.uid: [source.document] for source in here}, job)
        objects = [] if lost else list(_objects(here, job.written, situation))
        for source in everywhere:
            if source in sources:
                own, own_losses = _convert_everywhere(source, situation, options)
                objects += own
                lost |= own_losses
        if not lost:
            return SourceConversion(tuple(objects), tuple(sources), losses)
        losses.update(lost)


def _convert_everywhere(
    source: SourcePolicy, situation: Situation, options: Options
) -> tuple[list[NativeObject], dict[str, tuple[NativeLoss, ...]]]:
    """Convert a cluster-wide DENY in each namespace. It does not close pods to other requests."""
    settings = Settings.from_mapping({"denyOnly": "allow"}, situation.settings)
    read = read_documents(in_namespaces(source, situation), settings)
    documents = [(policy, read.document_of(policy)) for policy in read.policies]
    items = [Item(policy, document) for policy, document in documents if document is not None]
    job = _run(items, situation, options, settings)
    lost = _losses({source.owner.uid: [item.document for item in items]}, job)
    objects = [
        marked(cast("Json", dict(each.manifest)), each.document.home, [source.owner], situation) for each in job.written
    ]
    return objects, lost


def _run(items: Sequence[Item], situation: Situation, options: Options, settings: Settings) -> Job:
    job = Job(settings, situation.world, options, [*items, *situation.foreign_items])
    convert = dict(converters_to(situation.mesh))[gep3779.Policy]
    convert(items, job)
    return job


def _losses(documents: Mapping[str, Sequence[Document]], job: Job) -> dict[str, tuple[NativeLoss, ...]]:
    """Return the losses of the policies in these documents, by UID."""
    kept = {id(document) for document in job.kept}
    lost: dict[str, tuple[NativeLoss, ...]] = {}
    reported = [loss for loss in job.losses if loss.code.id not in _FOLLOWED]
    attributed: set[int] = set()
    for uid, written in documents.items():
        spans = [document.span for document in written]
        own = [loss for loss in reported if loss.span is not None and any(span.holds(loss.span) for span in spans)]
        attributed.update(map(id, own))
        if own or any(id(document) in kept for document in written):
            lost[uid] = tuple(dict.fromkeys(map(_loss, own)))
    strays = tuple(_loss(loss) for loss in reported if id(loss) not in attributed)
    if strays:  # the policy of the loss is not known
        return {uid: (*lost.get(uid, ()), *strays) for uid in documents}
    return lost


def _loss(diagnostic: Diagnostic) -> NativeLoss:
    return NativeLoss(diagnostic.code, diagnostic.message, diagnostic.help)


# Marks


def _objects(
    sources: Sequence[SourcePolicy], written: Sequence[Written], situation: Situation
) -> Iterator[NativeObject]:
    by_document = {id(source.document): source for source in sources}
    renamed: dict[tuple[str, str, str], str] = {}
    seen: set[tuple[str, str, str]] = set()
    for each in sorted(written, key=_rank):
        owners = [by_document[id(document)].owner for document in (each.document, *each.others)]
        native = _native(each, by_document[id(each.document)], owners, renamed, situation)
        metadata = native.manifest["metadata"]
        old = str(cast("Json", each.manifest["metadata"])["name"])
        kind = str(each.manifest["kind"])
        renamed[(kind, metadata["namespace"], old)] = metadata["name"]
        key = kind, metadata["namespace"], metadata["name"]
        if key not in seen:
            seen.add(key)
            yield native


def _rank(each: Written) -> int:
    kind = str(each.manifest["kind"])
    return _LINKERD_ORDER.index(kind) if kind in _LINKERD_ORDER else 0


def _native(
    each: Written,
    source: SourcePolicy,
    owners: Iterable[PolicyOwner],
    renamed: Mapping[tuple[str, str, str], str],
    situation: Situation,
) -> NativeObject:
    manifest = cast("Json", dict(each.manifest))
    namespace = source.ref.namespace or situation.settings.namespace
    manifest["spec"] = _renamed_references(manifest["spec"], namespace, renamed)
    shared = manifest["kind"] == "Server"  # the name follows from its pods and port, not from its policies
    if shared:
        manifest["spec"] |= _PROXY_PROTOCOL
    annotations = {istio.DRY_RUN: "true"} if source.audits and manifest["apiVersion"].startswith(istio.GROUP) else {}
    return marked(manifest, namespace, owners, situation, annotations, shared=shared)


def marked(
    manifest: Json,
    namespace: str,
    owners: Iterable[PolicyOwner],
    situation: Situation,
    annotations: Mapping[str, str] | None = None,
    *,
    shared: bool = False,
) -> NativeObject:
    """Return a marked object whose name follows from its content."""
    chosen = tuple(sorted(set(owners)))
    group, kind = str(manifest["apiVersion"]).rpartition("/")[0], str(manifest["kind"])
    stands_for = [] if shared else [owner.uid for owner in chosen]
    parts = [manifest["apiVersion"], kind, namespace, manifest["spec"], dict(annotations or {}), stands_for]
    prefix = "eastgate" if shared else chosen[0].name
    name = name_of(prefix, parts, situation.names_taken(group, kind, namespace))
    return NativeObject(mark(manifest, name, namespace, chosen, annotations), chosen)


def _renamed_references(spec: Json, namespace: str, renamed: Mapping[tuple[str, str, str], str]) -> Json:
    """Return a spec whose references to other objects of Linkerd have the final names."""

    def rename(ref: Any) -> Any:
        name = renamed.get((ref["kind"], namespace, ref["name"])) if ref.get("group") == linkerd.GROUP else None
        return ref if name is None else {**ref, "name": name}

    changed = dict(spec)
    if "targetRef" in changed:
        changed["targetRef"] = rename(changed["targetRef"])
    for field in ("parentRefs", "requiredAuthenticationRefs"):
        if field in changed:
            changed[field] = [rename(ref) for ref in changed[field]]
    return changed
