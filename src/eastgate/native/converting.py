"""Native objects for the policies that convert without loss, and why the others do not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from eastgate.convert import codes
from eastgate.convert.model import Item, Job, Options, Written
from eastgate.convert.registry import converters_to
from eastgate.diagnostics import Diagnostic
from eastgate.dialects import gep3779, istio, linkerd
from eastgate.native.marking import Owner, mark, name_of
from eastgate.native.model import Json, NativeLoss
from eastgate.native.situation import Situation, Source
from eastgate.records import dataclass

__all__ = ["Conversion", "NativeObject", "convert_sources", "marked"]

_FOLLOWED = frozenset({codes.SERVICE_SELECTOR.id})
"""Losses that are none where conversions are repeated: the selector of a Service is followed."""

_DRY_RUN = "istio.io/dry-run"
_LINKERD_ORDER = ("Server", "MeshTLSAuthentication", "HTTPRoute", "AuthorizationPolicy")
_PROXY_PROTOCOL = {"proxyProtocol": "unknown"}  # what an API server would add


@dataclass(frozen=True, slots=True, eq=False)
class NativeObject:
    """A marked object, and the policies that it stands for."""

    manifest: Json
    owners: tuple[Owner, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """The objects of the policies that convert, and the losses of those that do not, by UID."""

    objects: tuple[NativeObject, ...]
    converted: tuple[Source, ...]
    losses: Mapping[str, tuple[NativeLoss, ...]]


def convert_sources(situation: Situation, dropped: Collection[str], options: Options) -> Conversion:
    """Convert the policies but those of the dropped UIDs. One that loses something is left out, and the rest is
    converted again without it, until nothing is lost.
    """
    losses: dict[str, tuple[NativeLoss, ...]] = {}
    for source in situation.sources:
        if source.fault is not None:
            losses[source.owner.uid] = tuple(map(_loss, source.fault.errors))
    while True:
        sources = [s for s in situation.sources if s.owner.uid not in losses and s.owner.uid not in dropped]
        job = _run(sources, situation, options)
        lost = _losses(sources, job)
        if not lost:
            return Conversion(tuple(_objects(sources, job.written, situation)), tuple(sources), losses)
        losses.update(lost)


def _run(sources: Sequence[Source], situation: Situation, options: Options) -> Job:
    items = [Item(source.policy, source.document) for source in sources if source.policy is not None]
    job = Job(situation.settings, situation.world, options, [*items, *situation.foreign_items])
    convert = dict(converters_to(situation.mesh))[gep3779.Policy]
    convert(items, job)
    return job


def _losses(sources: Sequence[Source], job: Job) -> dict[str, tuple[NativeLoss, ...]]:
    kept = {id(document) for document in job.kept}
    lost: dict[str, tuple[NativeLoss, ...]] = {}
    reported = [loss for loss in job.losses if loss.code.id not in _FOLLOWED]
    attributed: set[int] = set()
    for source in sources:
        own = [loss for loss in reported if loss.span is not None and source.document.span.holds(loss.span)]
        attributed.update(map(id, own))
        if own or id(source.document) in kept:
            lost[source.owner.uid] = tuple(map(_loss, own))
    strays = tuple(_loss(loss) for loss in reported if id(loss) not in attributed)
    if strays:  # nobody knows whose they are
        return {source.owner.uid: (*lost.get(source.owner.uid, ()), *strays) for source in sources}
    return lost


def _loss(diagnostic: Diagnostic) -> NativeLoss:
    return NativeLoss(diagnostic.code, diagnostic.message, diagnostic.help)


# Marks


def _objects(sources: Sequence[Source], written: Sequence[Written], situation: Situation) -> Iterator[NativeObject]:
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
    source: Source,
    owners: Iterable[Owner],
    renamed: Mapping[tuple[str, str, str], str],
    situation: Situation,
) -> NativeObject:
    manifest = cast("Json", dict(each.manifest))
    namespace = source.ref.namespace or situation.settings.namespace
    manifest["spec"] = _renamed_references(manifest["spec"], namespace, renamed)
    shared = manifest["kind"] == "Server"  # named by its pods and port, whichever policies share it
    if shared:
        manifest["spec"] |= _PROXY_PROTOCOL
    annotations = {_DRY_RUN: "true"} if source.audits and manifest["apiVersion"].startswith(istio.GROUP) else {}
    return marked(manifest, namespace, owners, situation, annotations, shared=shared)


def marked(
    manifest: Json,
    namespace: str,
    owners: Iterable[Owner],
    situation: Situation,
    annotations: Mapping[str, str] | None = None,
    *,
    shared: bool = False,
) -> NativeObject:
    """Return an object under the name that follows from its content, with its marks."""
    chosen = tuple(sorted(set(owners)))
    group, kind = str(manifest["apiVersion"]).rpartition("/")[0], str(manifest["kind"])
    stands_for = [] if shared else [owner.uid for owner in chosen]
    parts = [manifest["apiVersion"], kind, namespace, manifest["spec"], dict(annotations or {}), stands_for]
    prefix = "eastgate" if shared else chosen[0].name
    name = name_of(prefix, parts, situation.names_taken(group, kind, namespace))
    return NativeObject(mark(manifest, name, namespace, chosen, annotations), chosen)


def _renamed_references(spec: Json, namespace: str, renamed: Mapping[tuple[str, str, str], str]) -> Json:
    """Return a spec in which references to other objects of Linkerd have their final names."""

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
