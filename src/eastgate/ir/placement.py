"""Where layers stand, what their selectors chose a chain for, and which readings shaped it: as data.

Each dialect brings its own scopes and readings; `str` puts them in words for people, and no code reads those.
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
    """The enforcement point and level of a layer. `site` is None where it is not known; dialects name their levels."""

    site: Site | None
    level: str

    def __str__(self) -> str:
        return self.level if self.site is None else f"{self.site}/{self.level}"


class ScopeKind(enum.Enum):
    """The requests that a selector chose a chain for."""

    OTHERS = enum.auto()  # all that nothing more special is meant for
    ROUTE = enum.auto()  # those of one route
    UNROUTED = enum.auto()  # those of none of the routes
    PROBE = enum.auto()  # probes of the kubelet


class Scope(Protocol):
    """The reason for which a selector chose a chain."""

    @property
    def kind(self) -> ScopeKind:
        """Return which requests these are."""
        ...

    @property
    def refs(self) -> tuple[PolicyRef, ...]:
        """Return the policies and routes without which another chain would be chosen, from the outside in."""
        ...


class Reading(Protocol):
    """A reading of an unclear specification that shaped a chain."""

    @property
    def setting(self) -> str:
        """Return the name of the setting that chooses it."""
        ...


@runtime_checkable
class PolicyReading(Reading, Protocol):
    """A reading that changes what one policy does, so that an explanation needs it."""

    @property
    def policy(self) -> PolicyRef:
        """Return the policy."""
        ...


@dataclass(frozen=True, slots=True)
class ProxyReading:
    """A reading: who enforces policies at a workload. `by` is None where nothing does.

    A chain that nothing enforces has no stages. One that is not `certain` to be enforced has those of its policies, so
    that it allows only what is allowed either way. `ports` are those in doubt; none where all are. `choice` is that of
    the setting, and `choices` are those that would end the doubt.
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
            so = f"so that nobody enforces {names}"
        else:
            so = f"so that {self.by} {'enforces' if self.certain else 'may not enforce'} {names}"
        return f"{self.setting}: {self.choice} ({self.why}, {so})"
