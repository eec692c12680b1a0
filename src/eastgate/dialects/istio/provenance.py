"""The placements of Istio's layers, their stages, scopes and readings, as data. `str` is for output."""

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
    """A proxy's view of traffic. The meaning of rules depends on it."""

    HTTP = "HTTP"
    BYTES = "bytes"
    ANY = "any"  # Eastgate's proxies: attributes that they cannot see are unknown


@dataclass(frozen=True, slots=True)
class IstioScope:
    """The traffic of a chain: Istio's proxies have different rules for HTTP and bytes."""

    surface: Surface
    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS
    refs: ClassVar[tuple[PolicyRef, ...]] = ()

    def __str__(self) -> str:
        return "HTTP" if self.surface is Surface.HTTP else "bytes: fields of HTTP do not count"


@dataclass(frozen=True, slots=True)
class IstioPlaneReading:
    """The reading of the settings for the comparison of paths and hosts."""

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
"""The rule that refuses plaintext."""
TOKEN_DEMAND = ImpliedRule(RuleKind.SCHEME, "(tokens must be valid)")
"""The rule that refuses tokens that no policy accepts."""
PROXY_REFUSAL = ImpliedRule(RuleKind.DEFAULT, "the proxy's check for %00 in paths")
"""The rule that refuses paths that a proxy cannot normalize."""


@dataclass(frozen=True, slots=True)
class BadProvider:
    """The origin of a rule of a CUSTOM policy with an invalid provider: requests that match are denied."""

    why: str
    kind: ClassVar[RuleKind] = RuleKind.UNRESOLVED

    def __str__(self) -> str:
        return f"({self.why})"
