"""RequestAuthentication and PeerAuthentication: which tokens a workload accepts, and where it demands mTLS."""

from __future__ import annotations

import enum
from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.dialects.istio.model import IstioPolicy
from eastgate.ir import repr_of_named


class MtlsMode(enum.StrEnum):
    """Whether connections have mutual TLS, as it is written. UNSET leaves it to the next wider policy."""

    UNSET = "UNSET"
    DISABLE = "DISABLE"
    PERMISSIVE = "PERMISSIVE"
    STRICT = "STRICT"


@dataclass(frozen=True, slots=True)
class MtlsPort:
    """The mode of one port of the workloads that a PeerAuthentication selects."""

    port: int
    mode: MtlsMode
    span: Span


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PeerAuthentication(IstioPolicy):
    """The modes of workloads."""

    mode: MtlsMode = MtlsMode.UNSET
    mode_span: Span
    ports: tuple[MtlsPort, ...] = ()

    __repr__ = repr_of_named

    @property
    def selects_labels(self) -> bool:
        """Return whether it is about certain workloads, and not about a namespace or the mesh."""
        return bool(self.selector.match_labels)


@dataclass(frozen=True, slots=True)
class HeaderLocation:
    """A header that may hold a token behind a prefix. The name is in lower case."""

    name: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class JwtRule:
    """One issuer whose tokens are accepted, its keys, and the locations of tokens in requests.

    Without an issuer, any is accepted. Without a location, tokens are in the Authorization header or `access_token`.
    `forwards`: the application gets the token. That changes no decision.
    """

    span: Span
    issuer: str | None = None
    audiences: frozenset[str] = frozenset()
    jwks: str | None = None
    jwks_uri: str | None = None
    headers: tuple[HeaderLocation, ...] = ()
    params: tuple[str, ...] = ()
    cookies: tuple[str, ...] = ()
    space_delimited: frozenset[str] = frozenset()
    forwards: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RequestAuthentication(IstioPolicy):
    """The tokens that workloads accept. A request without a token passes, and has no claims."""

    rules: tuple[JwtRule, ...] = ()

    __repr__ = repr_of_named
