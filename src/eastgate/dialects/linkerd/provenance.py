"""Origins of rules, and scopes of chains, that no policy states: as structured data, with text in `str`."""

from __future__ import annotations

import enum
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.dialects.linkerd.model import Protocol
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.ir import ImpliedRule, Placement, PolicyRef, RuleKind, ScopeKind, Site
from eastgate.settings import DataPlane

INBOUND = Placement(Site.WORKLOAD, "inbound")


class StageName(enum.StrEnum):
    """The stages of a port. A request that matches no route is in `Unroutable.NO_INBOUND_ROUTE`."""

    AUDIT = "audit"
    AUTHORIZED = "authorized"


LOCALHOST = ImpliedRule(RuleKind.ITSELF, "localhost, which Linkerd's proxy always lets in,")
"""The rule for requests of a workload to itself, which its proxy always allows."""


PROBE_ROUTE = ImpliedRule(RuleKind.PROBE, "the route that Linkerd makes for probes")
"""The rule of the route that Linkerd adds for the kubelet's probes."""


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The origin of a rule from the `accessPolicy` of a Server."""

    access: InboundPolicy
    kind: ClassVar[RuleKind] = RuleKind.FALLBACK

    def __str__(self) -> str:
        return f"accessPolicy {self.access}"


@dataclass(frozen=True, slots=True)
class DefaultPolicy:
    """The origin of a rule for ports without a Server. `source` is the text of the setting or annotation."""

    policy: InboundPolicy
    source: str
    kind: ClassVar[RuleKind] = RuleKind.DEFAULT

    def __str__(self) -> str:
        return f"default policy {self.policy} ({self.source})"


@dataclass(frozen=True, slots=True)
class UnresolvedReference:
    """The origin of a rule with a reference to a missing authentication."""

    ref: PolicyRef
    kind: ClassVar[RuleKind] = RuleKind.UNRESOLVED

    def __str__(self) -> str:
        return f"refers to {self.ref}, which does not exist"


@dataclass(frozen=True, slots=True)
class DataPlaneReading:
    """The value of the setting that chooses how paths are compared."""

    data_plane: DataPlane
    setting: ClassVar[str] = "dataPlane"

    def __str__(self) -> str:
        compared = "as they are sent" if self.data_plane is DataPlane.NATIVE else "after they are normalised"
        return f"{self.setting}: {self.data_plane} (paths are compared {compared})"


@dataclass(frozen=True, slots=True)
class InboundScope:
    """The scope of a chain: the Server that owns the port, its protocol, and a part of its requests."""

    server: PolicyRef | None
    protocol: Protocol
    kind: ScopeKind = ScopeKind.OTHERS
    route: PolicyRef | None = None

    @property
    def refs(self) -> tuple[PolicyRef, ...]:
        """Return the Server and the route, if they exist."""
        return tuple(ref for ref in (self.server, self.route) if ref is not None)

    @property
    def port(self) -> InboundScope:
        """Return the scope of the whole port."""
        return InboundScope(self.server, self.protocol)

    def __str__(self) -> str:
        if self.server is None:
            port = "no Server has this port" + (", which is opaque" if self.protocol is Protocol.OPAQUE else "")
        else:
            port = f"Server {self.server.namespace}/{self.server.name}, protocol {self.protocol}"
        match self.kind:
            case ScopeKind.UNROUTED:
                return f"{port}: none of its routes"
            case ScopeKind.PROBE:
                return f"{port}, a probe of the kubelet"
            case ScopeKind.ROUTE if self.route is not None:
                return f"{port}, {self.route.kind} {self.route.namespace}/{self.route.name}"
            case _:
                return port
