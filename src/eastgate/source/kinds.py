"""The kinds that are read from a cluster: policies, also those that are not understood, and what exists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from eastgate import dialects
from eastgate.cluster.kinds import world_kinds
from eastgate.kubernetes import Discovery, Resource
from eastgate.records import dataclass
from eastgate.regexes import regex
from eastgate.unread import KINDS, Influence

__all__ = ["BY_NAME", "WatchedKind", "served_kinds", "watched_kinds"]

_STAGES: Final = ("", "beta", "alpha")
_VERSION: Final = regex(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
BY_NAME: Final = frozenset({("", "Secret"), ("", "ConfigMap")})
"""Kinds of which only the objects are read that something else names."""


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
    for name in (*world_kinds(), *((each.group, each.kind) for each in KINDS if each.influence is not Influence.NONE)):
        kinds.setdefault(name, WatchedKind(*name))
    return tuple(kinds.values())


def _age(version: str) -> tuple[int, int, int]:
    """Return the rank of a version, as Kubernetes has it: `v1`, `v1beta2`, `v1beta1`, `v2alpha1`."""
    parts = _VERSION.fullmatch(version)
    if parts is None:
        return len(_STAGES), 0, 0
    major, stage, minor = parts.groups()
    return _STAGES.index(stage or ""), -int(major), -int(minor or 0)


def served_kinds(discovery: Discovery, kinds: Iterable[WatchedKind]) -> dict[WatchedKind, Resource]:
    """Return how the server serves these kinds, without those that it does not, or not in a version that is read.

    A kind that is only served in versions nobody reads is taken in the preferred one: its objects are refused, and
    close what they are about.
    """
    served: dict[WatchedKind, Resource] = {}
    for kind in kinds:
        resource = discovery.find(kind.group, kind.kind, kind.versions) or discovery.find(kind.group, kind.kind)
        if resource is not None and resource.can_be_watched:
            served[kind] = resource
    return served
