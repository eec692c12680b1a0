"""The placements of Istio's layers, their stages, scopes and readings: as data, with words for people in `str`."""

from __future__ import annotations

import enum
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.dialects.istio.settings import PathNormalization
from eastgate.ir import ImpliedRule, Placement, PolicyRef, RuleKind, ScopeKind, Site
from eastgate.settings import DataPlane

AT_SIDECAR = Placement(Site.WORKLOAD, "istio sidecar")
AT_GATEWAY = Placement(Site.GATEWAY, "istio gateway")
AT_WAYPOINT = Placement(Site.WORKLOAD, "istio waypoint")
AT_ZTUNNEL = Placement(Site.WORKLOAD, "istio ztunnel")


class StageName(enum.StrEnum):
    """The stages of a chain, in order."""

    MTLS = "mTLS"
    PATH = "path"
    CUSTOM = "custom"
    BAD_CUSTOM = "custom without its provider"
    TOKENS = "tokens"
    AUDIENCES = "audiences of tokens"
    AUDIT = "audit"
    DENY = "deny"
    ALLOW = "allow"


class Surface(enum.Enum):
    """What a proxy sees of traffic, on which the meaning of rules depends."""

    HTTP = "HTTP"
    BYTES = "bytes"
    ANY = "any"  # our proxies: what they cannot see is unknown


@dataclass(frozen=True, slots=True)
class IstioScope:
    """The traffic that a chain is for: Istio's proxies judge HTTP and bytes by different rules."""

    surface: Surface
    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS
    refs: ClassVar[tuple[PolicyRef, ...]] = ()

    def __str__(self) -> str:
        return "HTTP" if self.surface is Surface.HTTP else "bytes: fields of HTTP do not count"


@dataclass(frozen=True, slots=True)
class IstioPlaneReading:
    """The reading of the settings that choose how paths and hosts are compared."""

    data_plane: DataPlane
    normalization: PathNormalization
    setting: ClassVar[str] = "dataPlane"

    def __str__(self) -> str:
        if self.data_plane is DataPlane.NATIVE:
            return (
                f"{self.setting}: {self.data_plane} (paths are compared with pathNormalization: {self.normalization})"
            )
        return f"{self.setting}: {self.data_plane} (paths and hosts are compared in their canonical form)"


MTLS_DEMAND = ImpliedRule(RuleKind.SCHEME, "(mTLS is STRICT)")
"""A rule by which plaintext is refused."""
TOKEN_DEMAND = ImpliedRule(RuleKind.SCHEME, "(tokens must be valid)")
"""A rule by which tokens are refused that nobody accepts."""
PROXY_REFUSAL = ImpliedRule(RuleKind.DEFAULT, "the proxy's check for %00 in paths")
"""The rule by which a proxy refuses paths that it cannot normalize."""


@dataclass(frozen=True, slots=True)
class BadProvider:
    """The origin of a rule of a CUSTOM policy whose provider cannot be asked: what it matches is denied."""

    why: str
    kind: ClassVar[RuleKind] = RuleKind.UNRESOLVED

    def __str__(self) -> str:
        return f"({self.why})"
