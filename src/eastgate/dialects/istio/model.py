"""Istio's policies after reading: the text of their rules, which has another meaning for each kind of proxy."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Selector, Target
from eastgate.dialects.istio.written import IstioRule, WrittenValue
from eastgate.ir import Origin, PolicyRef, repr_of_named

GROUP = "security.istio.io"
DRY_RUN = "istio.io/dry-run"  # the annotation of a policy that only audits


class Action(enum.StrEnum):
    """The effect of a policy on requests that match one of its rules."""

    ALLOW = "ALLOW"
    DENY = "DENY"
    AUDIT = "AUDIT"
    CUSTOM = "CUSTOM"


@dataclass(frozen=True, slots=True)
class PolicyTarget:
    """An entry of `targetRefs`, in the policy's own namespace. The core group is the empty text."""

    group: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IstioPolicy:
    """The common fields of all policies. Each object equals only itself: a changed policy is another object.

    Without `refs` it applies to the workloads that `selector` selects in its namespace or, with `in_root`, in all
    namespaces. `has_selector`: a selector is written, even if it is empty. `created` sorts by age; it is None if no API
    server has set it.
    """

    ref: PolicyRef
    span: Span
    targets: tuple[Target, ...] = ()
    references: tuple[PolicyRef, ...] = ()
    audit: bool = False
    selector: Selector = Selector()
    has_selector: bool = False
    refs: tuple[PolicyTarget, ...] = ()
    in_root: bool = False
    created: str | None = None

    @property
    def namespace(self) -> str:
        """Return its namespace."""
        return self.ref.namespace or ""

    @property
    def origins(self) -> Iterator[Origin]:
        """Return the origins of its rules. Most kinds have no rules."""
        return iter(())


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IstioAuthorizationPolicy(IstioPolicy):
    """An AuthorizationPolicy: ANY of its rules. `provider` is that of a CUSTOM policy. `dry_run` implies `audit`."""

    action: Action
    rules: tuple[IstioRule, ...]
    provider: WrittenValue | None = None
    dry_run: bool = False

    __repr__ = repr_of_named

    @property
    def origins(self) -> Iterator[Origin]:
        return (rule.origin for rule in self.rules)


# RequestAuthentication and PeerAuthentication: accepted tokens, and required mTLS


class MtlsMode(enum.StrEnum):
    """The mode of mutual TLS, as it is written. UNSET inherits the mode of the next wider policy."""

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
    """The modes of mTLS of workloads."""

    mode: MtlsMode = MtlsMode.UNSET
    mode_span: Span
    ports: tuple[MtlsPort, ...] = ()

    __repr__ = repr_of_named

    @property
    def selects_labels(self) -> bool:
        """Return whether it applies to selected workloads, and not to a namespace or the mesh."""
        return bool(self.selector.match_labels)


@dataclass(frozen=True, slots=True)
class HeaderLocation:
    """A header that may contain a token after a prefix. The name is in lower case."""

    name: str
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class JwtRule:
    """One issuer of accepted tokens, its keys, and the locations of tokens in requests.

    Without an issuer, any is accepted. Without a location, tokens are in the Authorization header or `access_token`.
    `forwards`: the application gets the token. This changes no decision.
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
