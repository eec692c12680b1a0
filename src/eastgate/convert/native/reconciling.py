"""Steps from the existing native objects to the wanted ones. No step allows a request that both ends deny.

Istio. A request is allowed if no DENY matches it, and an ALLOW matches it or no ALLOW targets the pod. Names follow
from contents, so a change creates a new object and removes the old one. The order of the steps is: create new DENY,
create new ALLOW, delete old ALLOW, delete old DENY. So whenever ALLOW policies of both ends exist, the DENY policies of
both ends exist too:

- Until the new ALLOW are created, all ALLOW and DENY of the old end exist. No more than before is allowed.
- Then all DENY of both ends exist. A request that an old ALLOW and no DENY matches was allowed before. A request that a
  new ALLOW and no DENY matches is allowed after. A pod that no ALLOW targets has lost its old ones and gets none.
- When the old ALLOW are deleted, no more than after is allowed.

Linkerd. Every request without an authorization is denied. An authorization is created after the objects that it refers
to, and deleted before them.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.convert.native.model import Json, is_ours, object_id


class NativeStepKind(enum.StrEnum):
    """The kind of change to one object."""

    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class NativeStep:
    """A change of one object. `existing` is the object as it was, or None for a new object."""

    kind: NativeStepKind
    manifest: Json
    existing: Json | None = None

    @property
    def namespace(self) -> str:
        """Return the namespace. The steps of different namespaces are independent."""
        return object_id(self.manifest)[2]


_ORDER: Mapping[str, int] = {
    "Server": 0,
    "MeshTLSAuthentication": 1,
    "NetworkAuthentication": 1,
    "HTTPRoute": 2,
    "AuthorizationPolicy": 3,
}


def steps(existing: Iterable[Json], wanted: Sequence[Json], sources: Collection[str]) -> list[NativeStep]:
    """Return the changes from the existing to the wanted objects, in order.

    `sources` are the UIDs of all policies. An object that Eastgate did not write is never changed, whatever its name
    is.
    """
    ours = {object_id(manifest): manifest for manifest in existing if is_ours(manifest, sources)}
    names = {object_id(manifest) for manifest in wanted}
    created, replaced = [], []
    for manifest in wanted:
        present = ours.get(object_id(manifest))
        if present is None:
            created.append(NativeStep(NativeStepKind.CREATE, manifest))
        elif _content(present) != _content(manifest):
            replaced.append(NativeStep(NativeStepKind.REPLACE, manifest, present))
    deleted = [
        NativeStep(NativeStepKind.DELETE, manifest, manifest) for key, manifest in ours.items() if key not in names
    ]
    return [
        *sorted(replaced, key=_rank),
        *sorted(created, key=_rank),
        *sorted(deleted, key=_rank, reverse=True),
    ]


def _rank(step: NativeStep) -> tuple[object, ...]:
    group, kind, namespace, name = object_id(step.manifest)
    is_istio = group == "security.istio.io"
    denies = step.manifest.get("spec", {}).get("action") == "DENY"
    return ((0 if denies else 1) if is_istio else _ORDER.get(kind, 0), namespace, kind, name)


def _content(manifest: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the fields that have a meaning: all labels and annotations, but no fields that an API server adds."""
    metadata = manifest["metadata"]
    owners = [
        tuple(str(owner.get(key)) for key in ("apiVersion", "kind", "name", "uid"))
        for owner in metadata.get("ownerReferences") or ()
    ]
    return (
        metadata.get("labels") or {},
        metadata.get("annotations") or {},
        sorted(owners),
        manifest.get("spec") or {},
    )
