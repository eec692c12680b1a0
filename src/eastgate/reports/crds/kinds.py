"""Every kind that is read, with its shapes; and how an API server is to serve those that nobody else defines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.dialects import registered
from eastgate.dialects.base import Kind
from eastgate.dialects.serving import AGE, Column, Served, ServedResource, Status
from eastgate.reading.manifests.shapes import Record
from eastgate.reports.invariants.shapes import CLUSTER_KIND
from eastgate.reports.invariants.shapes import SERVED as STATED

_HOLDS = Column("Holds", '.status.conditions[?(@.type=="Holds")].status')
_REASON = Column("Reason", '.status.conditions[?(@.type=="Holds")].reason')


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a kind. One that is `superseded` is served only where something converts it."""

    name: str
    shape: Record[Any]
    columns: tuple[Column, ...]
    superseded: str | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """One CustomResourceDefinition. The first version is the one that is stored."""

    group: str
    kind: str
    short: str | None
    cluster_scoped: bool
    resource: ServedResource
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True)
class Readable:
    """A kind in one version as a file may hold it: one shape, or any of some."""

    group: str
    version: str
    kind: str
    shapes: tuple[Record[Any], ...]


def served() -> list[Definition]:
    """Return a definition of each kind that only Eastgate defines, with its versions in the order of its dialect.

    The kinds of statements come last.
    """
    versions: dict[tuple[str, str], list[tuple[Kind[Any], Served]]] = {}
    for kind in registered().kinds:
        if kind.served is not None:
            versions.setdefault((kind.group, kind.kind), []).append((kind, kind.served))
    return [*(_definition(of_kind) for of_kind in versions.values()), *_invariants()]


def _invariants() -> Iterator[Definition]:
    """Yield the definitions of statements about all requests, which are no policies."""
    for kind, shape in STATED.items():
        version = Version("v1alpha1", shape, (_HOLDS, _REASON, AGE))
        yield Definition(
            "eastgate.dev",
            kind,
            "cinv" if kind == CLUSTER_KIND else "inv",
            kind == CLUSTER_KIND,
            ServedResource(f"{kind.lower()}s", Status.CONDITIONS),
            (version,),
        )


def _definition(versions: Sequence[tuple[Kind[Any], Served]]) -> Definition:
    kind, stored = versions[0]
    return Definition(
        kind.group,
        kind.kind,
        kind.short,
        kind.cluster_scoped,
        stored.resource,
        tuple(
            Version(kind.version, served.shape or kind.shapes()[0], served.columns, served.superseded)
            for kind, served in versions
        ),
    )


def readable() -> Iterator[Readable]:
    """Yield every kind that Eastgate reads itself."""
    for kind in registered().kinds:
        yield Readable(kind.group, kind.version, kind.kind, kind.shapes())
