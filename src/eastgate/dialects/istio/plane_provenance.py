"""The scopes and readings that depend on which of Istio's proxies enforce: as data, with words for people in `str`."""

from __future__ import annotations

from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.dialects.istio.authentications import MtlsMode
from eastgate.dialects.istio.settings import IstioDataPlane
from eastgate.ir import Placement, PolicyRef, ProxyReading, ScopeKind, Site

WITHOUT_PROXY = Placement(Site.WORKLOAD, "istio, without a proxy")


# Scopes


@dataclass(frozen=True, slots=True)
class PortScope:
    """The ports with a mode of mTLS of their own, and what else a chain is for."""

    ports: tuple[int, ...]
    mode: MtlsMode
    of: object
    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS
    refs: tuple[PolicyRef, ...] = ()

    def __str__(self) -> str:
        ports = ", ".join(map(str, self.ports))
        other = f", {self.of}" if self.of is not None else ""
        return f"port {ports}, mode {self.mode}{other}"


@dataclass(frozen=True, slots=True)
class WaypointScope:
    """The traffic through a waypoint, to a Service or to the workload itself."""

    waypoint: str
    service: str | None
    of: object = None
    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS
    refs: ClassVar[tuple[PolicyRef, ...]] = ()

    def __str__(self) -> str:
        addressed = "the workload itself" if self.service is None else f"Service {self.service}"
        other = f", {self.of}" if self.of is not None else ""
        return f"addressed to {addressed}, through waypoint {self.waypoint}{other}"


@dataclass(frozen=True, slots=True)
class Direct:
    """The traffic that goes through no waypoint."""

    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS
    refs: ClassVar[tuple[PolicyRef, ...]] = ()

    def __str__(self) -> str:
        return "through no waypoint"


# Readings


@dataclass(frozen=True, slots=True)
class DroppedFields:
    """The fields of a rule that ztunnel does not look at, and what becomes of the rule."""

    policy: PolicyRef
    index: int
    fields: tuple[str, ...]
    effect: str
    setting: ClassVar[str] = "istioDataPlane"

    def __str__(self) -> str:
        fields = ", ".join(self.fields)
        return f"ztunnel does not look at {fields} of {self.policy} rule {self.index}, so that the rule {self.effect}"


@dataclass(frozen=True, slots=True)
class UnsupportedAction:
    """A policy that ztunnel does not enforce, since it does not have its action."""

    policy: PolicyRef
    action: str
    setting: ClassVar[str] = "istioDataPlane"

    def __str__(self) -> str:
        return f"ztunnel has no action {self.action}, so that {self.policy} does nothing"


@dataclass(frozen=True, slots=True)
class Tied:
    """PeerAuthentications of one level and one age: ztunnel may obey any of them, so that each was tried."""

    policies: tuple[PolicyRef, ...]
    setting: ClassVar[str] = "istioDataPlane"

    def __str__(self) -> str:
        *others, last = map(str, self.policies)
        return f"ztunnel may obey any of {', '.join(others)} and {last}, which are of one age, so that each was tried"


@dataclass(frozen=True, slots=True)
class WaypointIdentity:
    """The identity that ztunnel sees behind a waypoint."""

    waypoint: str
    identity: str
    setting: ClassVar[str] = "istioDataPlane"

    def __str__(self) -> str:
        return f"ztunnel sees {self.identity}, the identity of waypoint {self.waypoint}, instead of the caller's"


@dataclass(frozen=True, slots=True)
class NoIdentity:
    """Ports without mTLS, on which callers have no identity."""

    policy: PolicyRef
    setting: ClassVar[str] = "istioDataPlane"

    def __str__(self) -> str:
        return f"{self.policy} has mode {MtlsMode.DISABLE} here, so that callers have no identity"


_SETTING = "istioDataPlane"
_CHOICES = ("sidecar", "ambient", "none")
_SIDECAR = "a sidecar of Istio"


def without_proxy(policies: tuple[PolicyRef, ...], choice: IstioDataPlane, refusal: str | None) -> ProxyReading:
    """Return the reading at a workload that has no proxy, so that its policies are not enforced.

    `refusal` says what refuses a proxy, if labels do not merely give none.
    """
    is_set = choice is IstioDataPlane.NONE
    why = "no pod has a proxy of Istio" if is_set else refusal or "no label gives this workload a proxy"
    return ProxyReading(policies, None, why, _SETTING, choice)


def unknown_proxy(policies: tuple[PolicyRef, ...]) -> ProxyReading:
    """Return the reading at a workload that has a sidecar or no proxy, so that both were tried."""
    why = "no manifest says whether it has a proxy"
    return ProxyReading(policies, _SIDECAR, why, _SETTING, IstioDataPlane.AUTO, certain=False, choices=_CHOICES)


def unknown_caller() -> ProxyReading:
    """Return the reading of a caller that has a sidecar or no proxy: without one it has no identity."""
    return unknown_proxy(())
