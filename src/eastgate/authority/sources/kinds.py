"""The kinds that are read from a cluster: policies, also those that are not understood, and what exists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Final

from eastgate import dialects
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.cluster.kinds import world_kinds
from eastgate.cluster.unread import KINDS, UnreadEffect, resembling, unread_kind
from eastgate.reading.kubernetes import Discovery, Resource

_STAGES: Final = ("", "beta", "alpha")
_VERSION: Final = regex(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
BY_NAME: Final = frozenset({("", "Secret"), ("", "ConfigMap")})
"""Kinds of which only the objects are read that something else names."""
LIST: Final = frozenset({"list"})
WATCH: Final = frozenset({"list", "watch"})


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """A kind to read, in the first of these versions that is served; without any, in the one the server prefers."""

    group: str
    kind: str
    versions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


def watched_kinds() -> tuple[WatchedKind, ...]:
    """Return every kind that has a say in who may talk to whom, each once, with its newest version first.

    What an older version lacks, API servers leave out of an object that is asked for in it.
    """
    versions: dict[tuple[str, str], list[str]] = {}
    for kind in dialects.registered().kinds:
        versions.setdefault((kind.group, kind.kind), []).append(kind.version)
    kinds = {name: WatchedKind(*name, tuple(sorted(each, key=_age))) for name, each in versions.items()}
    for name in (*world_kinds(), *((each.group, each.kind) for each in KINDS if each.effect is not UnreadEffect.NONE)):
        kinds.setdefault(name, WatchedKind(*name))
    return tuple(kinds.values())


def _age(version: str) -> tuple[int, int, int]:
    """Return the rank of a version, as Kubernetes has it: `v1`, `v1beta2`, `v1beta1`, `v2alpha1`."""
    parts = _VERSION.fullmatch(version)
    if parts is None:
        return len(_STAGES), 0, 0
    major, stage, minor = parts.groups()
    return _STAGES.index(stage or ""), -int(major), -int(minor or 0)


@dataclass(slots=True)
class ServedKinds:
    """Kinds as a server serves them, and `unknown` kinds with the reason: their objects, if any, cannot be listed.

    A kind that is in neither does not exist in the cluster.
    """

    resources: dict[WatchedKind, Resource] = field(default_factory=dict)
    unknown: dict[Resource, str] = field(default_factory=dict)


def served_kinds(
    discovery: Discovery,
    kinds: Iterable[WatchedKind],
    verbs: frozenset[str] = LIST,
    known: frozenset[tuple[str, str]] = frozenset(),
    unserved: frozenset[str] = frozenset(),
) -> ServedKinds:
    """Return how the server serves these kinds, so that they can be read with these `verbs`.

    If no served version of a kind is known here, the preferred one is taken: its objects are refused, and close what
    they are about. While a version of a group is stale, other versions do not show whether it has a kind: it may have
    fields that they lack, or other objects. `known` are groups and versions that answered before: they are taken to
    serve the same kinds now. `unserved` are definitions without a served version.
    """
    unknown = discovery.stale - known
    served = ServedKinds()
    for kind in kinds:
        resource = discovery.find(kind.group, kind.kind, kind.versions) or discovery.find(kind.group, kind.kind)
        version = resource.version if resource is not None else None
        stale = sorted(other for group, other in unknown if group == kind.group and other != version)
        if stale:
            why = f"the API server of {kind.group}/{stale[0]} does not answer"
            served.unknown[in_any_version(kind.group, kind.kind)] = why
        elif resource is not None and verbs <= resource.verbs:
            served.resources[kind] = resource
        elif resource is not None:
            why = f"the API server does not offer to {' and '.join(sorted(verbs - resource.verbs))} it"
            served.unknown[in_any_version(kind.group, kind.kind)] = why
        elif (name := next((name for name in unserved if _may_define(name, kind)), None)) is not None:
            why = f"no version of the definition {name} is served"
            served.unknown[in_any_version(kind.group, kind.kind)] = why
    return served


def _may_define(definition: str, kind: WatchedKind) -> bool:
    """Return whether a definition of this name may be that of a kind: the name has the plural, in lower case."""
    plural, _, group = definition.partition(".")
    return group == kind.group and plural.startswith(kind.kind.lower()[:-1])


def resembling_kinds(discovery: Discovery) -> tuple[WatchedKind, ...]:
    """Return served kinds that Eastgate does not know and whose names are those of policies."""
    known = {(kind.group, kind.kind) for kind in watched_kinds()}
    return tuple(
        WatchedKind(resource.group, resource.kind)
        for resource in discovery
        if (resource.group, resource.kind) not in known
        and unread_kind(resource.group, resource.kind) is None
        and resembling(resource.group, resource.kind) is not None
    )


def in_any_version(group: str, kind: str) -> Resource:
    """Return the placeholder document for a kind that cannot be listed, in any version."""
    return Resource(group, "*", kind, kind)
