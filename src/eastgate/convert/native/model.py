"""The native policies that should exist, and what became of each policy that they stand for."""

from __future__ import annotations

import enum
from typing import Any, TypeAlias

from eastgate.basics.diagnostics import Code
from eastgate.basics.records import dataclass
from eastgate.ir import PolicyRef

Json: TypeAlias = dict[str, Any]


class NativeMesh(enum.StrEnum):
    """The mesh whose policies are written."""

    ISTIO = "istio"
    LINKERD = "linkerd"


class Unwritable(enum.StrEnum):
    """What becomes of the pods of a policy that cannot be written, where the mesh would allow what is denied there."""

    LEAVE = "leave"  # the policy is not in force, and its status shows what is open
    CLOSE = "close"  # nobody reaches them


class NativeState(enum.StrEnum):
    """What became of a policy."""

    WRITTEN = "Written"  # the mesh enforces it
    COVERED = "Covered"  # it cannot be written, and the mesh answers all as it says, by what is written for others
    CLOSED = "Closed"  # it cannot be written, and nobody reaches the pods that it targets
    NOT_WRITTEN = "NotWritten"  # it is not in force


@dataclass(frozen=True, slots=True)
class NativeLoss:
    """A reason for which a policy cannot be written."""

    code: Code
    message: str
    help: str | None = None


@dataclass(frozen=True, slots=True)
class NativeDifference:
    """Requests that the mesh answers otherwise than the policies say; `allowed` is the verdict of the mesh.

    `destinations` are named as questions name them. `example` are the arguments of a question that shows it; None where
    the difference is only possible. `beside` are policies of the mesh that somebody else wrote for these destinations.
    """

    destinations: tuple[str, ...]
    allowed: bool
    example: tuple[str, ...] | None = None
    beside: tuple[PolicyRef, ...] = ()


@dataclass(frozen=True, slots=True)
class NativeOutcome:
    """What became of one policy: the objects that stand for it, why it is not written, and where the mesh differs.

    `also_closed` are pods that it does not target, and that were closed with those that it does.
    """

    source: PolicyRef
    uid: str
    state: NativeState
    objects: tuple[str, ...] = ()
    losses: tuple[NativeLoss, ...] = ()
    differences: tuple[NativeDifference, ...] = ()
    also_closed: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Return whether the mesh answers everything as this policy says."""
        return self.state in (NativeState.WRITTEN, NativeState.COVERED) and not self.differences


@dataclass(frozen=True, slots=True)
class ForeseenOutcome:
    """What would become of a policy if it were stored: why it could not be written, and what then becomes of its pods.

    `exactly`: the mesh can select its pods alone, so that no others would be closed.
    """

    losses: tuple[NativeLoss, ...]
    unwritable: Unwritable
    exactly: bool


@dataclass(frozen=True, slots=True)
class NativePlan:
    """The native objects that should exist, and an outcome for each policy, in the order of names.

    `doubts` name what could not be proven, for whatever policy. `is_wider`: the mesh allows what the policies deny.
    """

    mesh: NativeMesh
    objects: tuple[Json, ...]
    outcomes: tuple[NativeOutcome, ...]
    doubts: tuple[str, ...] = ()

    @property
    def is_wider(self) -> bool:
        """Return whether the mesh allows something that a policy denies: none of it could be closed."""
        return any(difference.allowed for outcome in self.outcomes for difference in outcome.differences)

    @property
    def sources(self) -> frozenset[str]:
        """Return the UIDs of all policies."""
        return frozenset(outcome.uid for outcome in self.outcomes)
