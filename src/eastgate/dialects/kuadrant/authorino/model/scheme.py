"""A scheme as a whole, and what it does after a decision."""

from __future__ import annotations

from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.model.authorizations import Authorization, PatternRules
from eastgate.dialects.kuadrant.authorino.model.conditions import Condition
from eastgate.dialects.kuadrant.authorino.model.identities import AnonymousAccess, ApiKeys, Identity, Jwt, Plain
from eastgate.dialects.kuadrant.authorino.model.metadata import HttpCall, Metadata
from eastgate.dialects.kuadrant.authorino.model.parts import Part, look_at_path
from eastgate.dialects.kuadrant.authorino.model.responses import Denial, Response, Wristband


@dataclass(frozen=True, slots=True)
class Callback(Part):
    """A request that is sent after every decision. Its response changes nothing."""

    name: str
    call: HttpCall
    priority: int = 0
    when: Condition | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return False  # whatever it looks at, it decides nothing


@dataclass(frozen=True, slots=True, eq=False)
class Scheme(Part):
    """One auth scheme. `namespace` is where its Secrets are."""

    namespace: str
    hosts: tuple[str, ...]
    identities: tuple[Identity, ...] = ()
    metadata: tuple[Metadata, ...] = ()
    authorizations: tuple[Authorization, ...] = ()
    responses: tuple[Response, ...] = ()
    when: Condition | None = None
    unauthenticated: Denial = Denial()
    unauthorized: Denial = Denial()
    span: Span | None = None
    callbacks: tuple[Callback, ...] = ()

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(
            *self.identities,
            *self.metadata,
            *self.authorizations,
            *self.responses,
            self.when,
            self.unauthenticated,
            self.unauthorized,
        )

    @property
    def is_quick(self) -> bool:
        """Return whether it asks no server but for keys of issuers, and computes nothing that could take long."""
        return (
            not self.metadata
            and all(isinstance(identity.method, _QUICK_METHODS) for identity in self.identities)
            and all(isinstance(authorization.rule, PatternRules) for authorization in self.authorizations)
            and not any(isinstance(response.content, Wristband) for response in self.responses)
        )


_QUICK_METHODS = (Jwt, ApiKeys, Plain, AnonymousAccess)
