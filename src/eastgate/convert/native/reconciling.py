"""Steps from the native objects that exist to those that should, none of which opens what is closed at both ends.

Istio. A request is allowed if no DENY matches, and an ALLOW does, or none targets the pod. Names follow from contents,
so that a change is a new object and the removal of the old one. In the order here (new DENY, new ALLOW, old ALLOW gone,
old DENY gone) there is never a moment at which a DENY of either end is missing while an ALLOW of the other is there:

- before all ALLOW are created, those of the old end are there and all its DENY: no more than before is allowed;
- then whatever an ALLOW of the old end matches, no old DENY does, and was allowed before; whatever a new one matches,
  no new DENY does, and is allowed after. A pod that no ALLOW targets has lost its old ones and gets none;
- when the old ALLOW are gone, no more is allowed than after.

Linkerd. All that nothing authorizes is denied. Authorizations come after what they refer to, and go before it.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.convert.native.model import Json, is_ours, object_id


class NativeStepKind(enum.StrEnum):
    """What a step does to one object."""

    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class NativeStep:
    """A change of one object. `existing` is the object as it was; None where it is new."""

    kind: NativeStepKind
    manifest: Json
    existing: Json | None = None

    @property
    def namespace(self) -> str:
        """Return the namespace: the steps of each stand for themselves."""
        return object_id(self.manifest)[2]


_ORDER: Mapping[str, int] = {
    "Server": 0,
    "MeshTLSAuthentication": 1,
    "NetworkAuthentication": 1,
    "HTTPRoute": 2,
    "AuthorizationPolicy": 3,
}


def steps(existing: Iterable[Json], wanted: Sequence[Json], sources: Collection[str]) -> list[NativeStep]:
    """Return the changes that make what exists what is wanted, in order.

    `sources` are the UIDs of all policies. An object that is not ours is left alone, whatever its name.
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
    """Return all that has a meaning: what an API server adds has none. Any label and annotation may have one."""
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
