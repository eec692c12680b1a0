"""An AuthPolicy, as it is once it has been read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from eastgate.cluster.targets import GatewayNamed, RouteNamed
from eastgate.diagnostics.spans import Span
from eastgate.dialects.kuadrant.provenance import SchemeNumber
from eastgate.ir import Origin, PolicyRef
from eastgate.records import dataclass

if TYPE_CHECKING:
    from eastgate.dialects.kuadrant.authorino.model import Scheme

__all__ = ["HttpRule", "Policy"]


@dataclass(frozen=True, slots=True)
class HttpRule:
    """Requests that are sent to authorization: ALL that is written fits, of each list ANY. None asks nothing."""

    hosts: tuple[str, ...] | None
    methods: tuple[str, ...] | None
    paths: tuple[str, ...] | None
    span: Span
    host_spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """One policy. Two policies are the same only if they are the same object: a changed one is another."""

    ref: PolicyRef
    span: Span
    name_span: Span
    target: RouteNamed | GatewayNamed
    target_span: Span
    rules: tuple[HttpRule, ...]
    schemes: tuple[Scheme, ...]
    scheme_spans: tuple[tuple[Span, tuple[Span, ...]], ...]  # of each scheme, and of each of its hosts
    created: str | None = None
    audit: bool = False

    references: ClassVar[tuple[PolicyRef, ...]] = ()

    @property
    def targets(self) -> tuple[RouteNamed | GatewayNamed, ...]:
        """What it applies to."""
        return (self.target,)

    @property
    def origins(self) -> Iterator[Origin]:
        """Where its schemes are written."""
        return (self.origin(place) for place in range(len(self.schemes)))

    def origin(self, place: int) -> Origin:
        """Where one of its schemes is written."""
        return Origin(self.ref, place, self.scheme_spans[place][0], derived=SchemeNumber(place))
