"""The AccessPolicy in one model for both of its forms."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.targets import Target
from eastgate.ir import ExternalAuthorizer, Origin, PolicyRef, Predicate, Rule, repr_of_named

PROTOTYPE_GROUP = "agentic.prototype.x-k8s.io"  # the group of the proposal's form
NETWORKING_GROUP = "agentic.networking.x-k8s.io"  # the group that the API has moved to


class Action(StrEnum):
    """The effect of a policy on the requests that its rules match."""

    ASK = "ASK"
    DENY = "DENY"
    ALLOW = "ALLOW"


@dataclass(frozen=True, slots=True)
class AuthorizerReference:
    """A Service that decides as external authorizer.

    `referrer` is the kind and namespace that a ReferenceGrant must name.
    """

    external: ExternalAuthorizer
    referrer: tuple[str, str, str]

    @property
    def reference(self) -> tuple[str, str, str, str, str, str, str]:
        """Return the reference to the Service, for `World.granted`."""
        return *self.referrer, "", "Service", self.external.namespace, self.external.service

    def __str__(self) -> str:
        return str(self.external)


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A policy whose rules all ask, all deny, or all allow.

    `action` is set even if there are no rules. `callers` are the sources of the allowing rules.
    """

    ref: PolicyRef
    span: Span
    targets: tuple[Target, ...]
    action: Action
    asks: tuple[tuple[Rule, AuthorizerReference], ...] = ()
    denies: tuple[Rule, ...] = ()
    allows: tuple[Rule, ...] = ()
    callers: tuple[Predicate, ...] = ()
    audit: bool = False

    references: ClassVar[tuple[PolicyRef, ...]] = ()

    __repr__ = repr_of_named

    @property
    def origins(self) -> Iterator[Origin]:
        """Return the origins of its rules."""
        return (rule.origin for rule in self.rules)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return all rules, in the order of the manifest."""
        return (*(rule for rule, _ in self.asks), *self.denies, *self.allows)
