"""What happens in a mesh, for whoever watches: a live view, a log, a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from eastgate.diagnostics import Diagnostic
from eastgate.mesh.modes import Mode
from eastgate.mesh.records import Observed

__all__ = [
    "Broken",
    "Changes",
    "Decided",
    "Enforced",
    "Event",
    "NotEnforced",
    "Noted",
    "OnEvent",
    "PartlyEnforced",
    "Ready",
]


@dataclass(frozen=True, slots=True)
class Ready:
    """Every proxy has answered for what it was sent. Ports that are closed are told of before, by NotEnforced."""

    workloads: int
    policies: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Decided:
    """A proxy has decided. `number` is what `why` knows the decision by."""

    seen: Observed
    number: int = 0


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs in the manifests, by name: policies, and what exists. What only moved to other lines is not here."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[str, ...]:
        """All of it, in order."""
        return tuple(sorted((*self.added, *self.changed, *self.removed)))


@dataclass(frozen=True, slots=True)
class Enforced:
    """A change is in force everywhere. `touched` are the workloads whose proxies were told something new.

    `modes` are the workloads that somebody gets in to now, or does not any more, though no rule is about them: the mode
    before, None where the workload is new, and the mode now.
    """

    milliseconds: float
    touched: tuple[str, ...]
    changes: Changes = Changes()
    modes: Mapping[str, tuple[Mode | None, Mode]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartlyEnforced:
    """A change is in force, but not all of it: ports in `closed` cannot enforce what they should, and let nobody in.

    `missing` names what a proxy has not accepted.
    """

    milliseconds: float
    touched: tuple[str, ...]
    changes: Changes
    closed: tuple[str, ...]
    missing: tuple[str, ...]
    modes: Mapping[str, tuple[Mode | None, Mode]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Broken:
    """A change has errors, so that what was in force stays."""

    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class NotEnforced:
    """A port is closed, because a policy cannot be enforced there or its proxy rejected it. `policies` are at fault."""

    workload: str
    port: int
    policies: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that somebody may want to know."""

    message: str
    trouble: bool = False


Event: TypeAlias = Ready | Decided | Enforced | PartlyEnforced | Broken | NotEnforced | Noted
OnEvent: TypeAlias = Callable[[Event], None]
