"""An AuthPolicy of 2022."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.targets import GatewayNamed, RouteNamed
from eastgate.dialects.kuadrant.proposal.provenance import SchemeNumber
from eastgate.ir import Origin, PolicyRef, repr_of_named

if TYPE_CHECKING:
    from eastgate.dialects.kuadrant.authorino.model import Scheme


@dataclass(frozen=True, slots=True)
class HttpRule:
    """Selects requests that must be authorized: ALL lists match, each by ANY entry. None matches all."""

    hosts: tuple[str, ...] | None
    methods: tuple[str, ...] | None
    paths: tuple[str, ...] | None
    span: Span
    host_spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """An AuthPolicy of 2022. Two are equal only if they are the same object: a changed policy is another object."""

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

    __repr__ = repr_of_named

    @property
    def targets(self) -> tuple[RouteNamed | GatewayNamed, ...]:
        return (self.target,)

    @property
    def origins(self) -> Iterator[Origin]:
        """Return the origins of its schemes."""
        return (self.origin(index) for index in range(len(self.schemes)))

    def origin(self, index: int) -> Origin:
        """Return the origin of one of its schemes."""
        return Origin(self.ref, index, self.scheme_spans[index][0], derived=SchemeNumber(index))
