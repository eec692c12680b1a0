"""Objects of unread kinds, and their possible effect on an answer."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Target
from eastgate.reading.manifests import Document
from eastgate.reading.repository import LeftOut


class UnreadEffect(enum.StrEnum):
    """The change that objects of a kind can make to an answer that leaves them out."""

    DENY = "deny"  # an allow may become a deny, and never the reverse
    CHANGE = "change"  # a request, or the policy that decides it, may change: either verdict may become the other
    NONE = "none"  # nothing: kinds that only look as if they decided


class EnforcementPlane(enum.StrEnum):
    """The proxies or network that enforce a kind."""

    NETWORK = "network"  # at the network of pods: all packets, from any sender
    MESH = "mesh"  # at proxies beside workloads, or on the way to them
    GATEWAY = "gateway"  # at gateways alone


class TargetField(enum.StrEnum):
    """The field that names the target of an object. `locating` has a function for each."""

    POD_SELECTOR = "podSelector"
    ENDPOINT_SELECTOR = "endpointSelector"
    SUBJECT = "subject"
    CALICO = "calico"
    USER_NETWORK = "user-network"
    MEMBERS = "members"
    SELECTOR = "selector"
    WORKLOAD_SELECTOR = "workloadSelector"
    TARGET_REFS = "targetRefs"
    NAMESPACE = "namespace"
    CLUSTER = "cluster"
    UNKNOWN = "unknown"


ISOLATING = frozenset({TargetField.USER_NETWORK, TargetField.MEMBERS})
"""Targets that are groups: a group is isolated from the rest, and its members reach each other."""


@dataclass(frozen=True, slots=True)
class UnreadKind:
    """One kind of the catalogue, in any version. `note` is its purpose, if it needs an explanation.

    `is_deployed` is unset for objects of a repository that belong to none of its environments.
    """

    group: str
    kind: str
    effect: UnreadEffect
    plane: EnforcementPlane
    target_field: TargetField
    note: str = ""
    is_deployed: bool = True

    @property
    def plural(self) -> str:
        """Return the plural of the kind."""
        if self.kind.endswith(("y", "Y")):
            return f"{self.kind[:-1]}ies"
        return f"{self.kind}es" if self.kind.endswith(("s", "x")) else f"{self.kind}s"


@dataclass(frozen=True, slots=True)
class UnreadTargets:
    """The targets of an object: ANY of `destinations`, where traffic arrives, or of `callers`, where it comes from.

    `located`: whether the targets are known. If not, they are all that the object may affect.
    """

    destinations: tuple[Target, ...]
    callers: tuple[Target, ...] = ()
    located: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Unread:
    """One object of an unread kind.

    With `part`, it is a part of the manifests that cannot be read: a file, an object with errors, a chart. Its content
    is unknown, and `targets` are all that it may affect. With `hosts`, only the hosts of an object are unknown:
    patterns with variables.
    """

    kind: UnreadKind
    targets: UnreadTargets
    document: Document = field(repr=False)
    part: LeftOut | None = None
    hosts: tuple[str, ...] = ()

    @property
    def span(self) -> Span:
        """Return the span of its document."""
        return self.document.span

    @property
    def acts(self) -> bool:
        """Return whether it can change any answer: some kinds do nothing, and some objects have no targets."""
        targets = self.targets
        return self.kind.effect is not UnreadEffect.NONE and bool(targets.destinations or targets.callers)

    def __str__(self) -> str:
        if self.part is not None:
            return self.part.what
        namespace = f"/{self.document.namespace}" if self.document.namespace else ""
        return f"{self.kind.kind}{namespace}/{self.document.name}"


class QuestionEnd(enum.StrEnum):
    """The end of a question at which an object acts."""

    DESTINATION = "destination"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class UnreadMatch:
    """An object that could change an answer, and the end at which it acts."""

    unread: Unread
    end: QuestionEnd

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        unread = self.unread
        if unread.part is not None:
            return {**unread.part.to_json(), "at": str(self.end)}
        return {
            "group": unread.kind.group,
            "kind": unread.kind.kind,
            "namespace": unread.document.namespace,
            "name": unread.document.name,
            "can": str(unread.kind.effect),
            "at": str(self.end),
            "located": unread.targets.located,
            "deployed": unread.kind.is_deployed,
            "file": unread.span.file,
            "line": unread.span.line,
        }


class Standing(enum.StrEnum):
    """The validity of an answer."""

    WHOLE = "whole"  # no object that was left out could change it
    PARTIAL = "partial"  # valid for the objects that were read; others could change it
    UNDECIDED = "undecided"  # unknown


@dataclass(frozen=True, slots=True)
class Unconsidered:
    """The objects that one answer could not consider. `totals` counts all unread objects, by kind.

    `rejected` is the number of policies with errors about other points.
    """

    matches: tuple[UnreadMatch, ...] = ()
    totals: Mapping[UnreadKind, int] = field(default_factory=dict, compare=False)
    rejected: int = 0
