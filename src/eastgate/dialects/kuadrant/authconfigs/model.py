"""AuthConfig: an auth scheme for hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.targets import HostNamed
from eastgate.dialects.kuadrant.authconfigs.provenance import WHOLE_SCHEME
from eastgate.ir import Origin, PolicyRef, repr_of_named

if TYPE_CHECKING:
    from eastgate.dialects.kuadrant.authorino.model import Scheme


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """An AuthConfig. Two are equal only if they are the same object: a changed AuthConfig is another object.

    `hosts` may begin with a wildcard and have a port. The scheme decides for all of them.
    """

    ref: PolicyRef
    span: Span
    name_span: Span
    hosts: tuple[str, ...]
    scheme: Scheme = field(repr=False)
    host_spans: tuple[Span, ...] = field(repr=False)
    created: str | None = None
    audit: bool = False

    references: ClassVar[tuple[PolicyRef, ...]] = ()

    __repr__ = repr_of_named

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.ref.namespace}/{self.ref.name}"

    @property
    def targets(self) -> tuple[HostNamed, ...]:
        return tuple(map(HostNamed, dict.fromkeys(self.hosts)))

    @property
    def origin(self) -> Origin:
        """Return the origin of its scheme."""
        return Origin(self.ref, 0, self.span, derived=WHOLE_SCHEME)

    @property
    def origins(self) -> Iterator[Origin]:
        yield self.origin
