"""Placements of layers, reasons for the choice of a chain, and readings that shaped a chain, as data.

Each dialect has its own scopes and readings. Their `str` is for output only; no code parses it.
"""

from __future__ import annotations

import enum
from typing import Protocol, runtime_checkable

from eastgate.basics.records import dataclass
from eastgate.ir.provenance import PolicyRef


class Site(enum.StrEnum):
    """The kind of thing that a layer guards."""

    NETWORK = "network"
    WORKLOAD = "workload"
    WAYPOINT = "waypoint"
    GATEWAY = "gateway"
    ROUTE = "route"
    BACKEND = "backend"


@dataclass(frozen=True, slots=True)
class Placement:
    """The enforcement point and level of a layer. `site` is None if it is unknown. Dialects name their levels."""

    site: Site | None
    level: str

    def __str__(self) -> str:
        return self.level if self.site is None else f"{self.site}/{self.level}"


class ScopeKind(enum.Enum):
    """The requests that a selector chose a chain for."""

    OTHERS = enum.auto()  # requests of no other scope
    ROUTE = enum.auto()  # requests of one route
    UNROUTED = enum.auto()  # requests of no route
    PROBE = enum.auto()  # probes of the kubelet


class Scope(Protocol):
    """The reason why a selector chose a chain."""

    @property
    def kind(self) -> ScopeKind:
        """Return the kind of these requests."""
        ...

    @property
    def refs(self) -> tuple[PolicyRef, ...]:
        """Return the policies and routes that led to this choice, the outermost first."""
        ...


class Reading(Protocol):
    """A reading of an unclear specification that shaped a chain."""

    @property
    def setting(self) -> str:
        """Return the name of the setting that chooses the reading."""
        ...


@runtime_checkable
class PolicyReading(Reading, Protocol):
    """A reading that changes the effect of one policy. An explanation of the policy needs it."""

    @property
    def policy(self) -> PolicyRef:
        """Return the policy."""
        ...


@dataclass(frozen=True, slots=True)
class ProxyReading:
    """A reading that says which proxy enforces policies at a workload. `by` is None if none does.

    A chain without an enforcer has no stages. If it is not `certain` that a chain is enforced, it has the stages of its
    policies: it allows only requests that are allowed in both cases. `ports` are the ports in doubt; if empty, all are.
    `choice` is the value of the setting, and `choices` are the values that would end the doubt.
    """

    policies: tuple[PolicyRef, ...]
    by: str | None
    why: str
    setting: str
    choice: str
    certain: bool = True
    ports: tuple[int, ...] = ()
    choices: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = ", ".join(map(str, self.policies))
        if self.by is None:
            so = f"so that no proxy enforces {names}"
        else:
            so = f"so that {self.by} {'enforces' if self.certain else 'may not enforce'} {names}"
        return f"{self.setting}: {self.choice} ({self.why}, {so})"
