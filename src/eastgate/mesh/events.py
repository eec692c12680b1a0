"""What happens in a mesh, for whoever watches: a live view, a log, a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from eastgate.diagnostics import Diagnostic
from eastgate.mesh.records import Observed

__all__ = ["Broken", "Decided", "Enforced", "Event", "NotEnforced", "Noted", "OnEvent", "PartlyEnforced", "Ready"]


@dataclass(frozen=True, slots=True)
class Ready:
    """Every proxy has answered for what it was sent. Ports that are closed are told of before, by NotEnforced."""

    workloads: int
    policies: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Decided:
    """A proxy has decided."""

    seen: Observed


@dataclass(frozen=True, slots=True)
class Enforced:
    """A change is in force everywhere. `touched` are the workloads whose proxies were told something new."""

    milliseconds: float
    touched: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartlyEnforced:
    """A change is in force, but not all of it: ports in `closed` cannot enforce what they should, and let nobody in.

    `missing` names what a proxy has not accepted.
    """

    milliseconds: float
    touched: tuple[str, ...]
    changed: tuple[str, ...]
    closed: tuple[str, ...]
    missing: tuple[str, ...]


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
