"""The events of a mesh, for those who watch it: a live view, a log, a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeAlias

from eastgate.authority.changes import ChangedNames
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.control.access_log import Observation
from eastgate.control.modes import PortMode


@dataclass(frozen=True, slots=True)
class Ready:
    """Every proxy has acknowledged what it was sent. Closed ports are reported before, by NotEnforced."""

    workloads: int
    policies: int
    milliseconds: float
    gateways: int = 0


@dataclass(frozen=True, slots=True)
class Decided:
    """A proxy has decided. `why` finds the decision by its `number`."""

    observation: Observation
    number: int = 0


@dataclass(frozen=True, slots=True)
class Enforced:
    """A change is in force everywhere. `touched` are the workloads whose proxies got something new.

    `modes` are the workloads whose mode changed, as (before, now); the former is None where the workload is new.
    """

    milliseconds: float
    touched: tuple[str, ...]
    changes: ChangedNames = ChangedNames()
    modes: Mapping[str, tuple[PortMode | None, PortMode]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartlyEnforced:
    """A change is in force in part: ports in `closed` cannot enforce what they should, and refuse everybody.

    `missing` names the resources that a proxy has not accepted.
    """

    milliseconds: float
    touched: tuple[str, ...]
    changes: ChangedNames
    closed: tuple[str, ...]
    missing: tuple[str, ...]
    modes: Mapping[str, tuple[PortMode | None, PortMode]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokenChange:
    """A change has errors, so that what was in force stays."""

    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class NotEnforced:
    """A port was closed: a policy cannot be enforced there, or its proxy rejected it. `policies` are at fault."""

    workload: str
    port: int
    policies: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Noted:
    """A note for people; `trouble` where somebody should do something about it."""

    message: str
    trouble: bool = False


MeshEvent: TypeAlias = Ready | Decided | Enforced | PartlyEnforced | BrokenChange | NotEnforced | Noted
OnEvent: TypeAlias = Callable[[MeshEvent], None]
