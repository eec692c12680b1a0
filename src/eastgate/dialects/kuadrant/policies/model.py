"""Today's AuthPolicy: rules of an auth scheme for a Gateway, a listener, a route, or a rule of a route."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import ClassVar, NamedTuple

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.targets import RulesOfGateway, RulesOfRoute
from eastgate.dialects.kuadrant.policies.provenance import RuleOfPolicy
from eastgate.ir import Origin, PolicyRef, repr_of_named
from eastgate.reading.manifests.node import Node


class Block(enum.StrEnum):
    """The precedence of a policy's rules over those of more specific policies."""

    DEFAULTS = "defaults"
    OVERRIDES = "overrides"


class Strategy(enum.StrEnum):
    """The way to merge the rules of two policies."""

    ATOMIC = "atomic"
    MERGE = "merge"


class RuleKey(NamedTuple):
    """The name by which rules of several policies replace each other. The single rule of a section has no name."""

    section: str
    name: str

    def __str__(self) -> str:
        return f"{self.section}#{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """An AuthPolicy. Two are equal only if they are the same object: a changed policy is another object.

    `written` is the field with the rules. None means that they are in the spec itself, which makes them defaults. A
    policy that is being `deleted` is no longer in force.
    """

    ref: PolicyRef
    span: Span
    name_span: Span
    target: RulesOfGateway | RulesOfRoute
    target_span: Span
    written: Block | None
    strategy: Strategy
    rules: Mapping[RuleKey, Node] = field(hash=False, repr=False)
    created: str | None = None
    audit: bool = False
    deleted: bool = False

    references: ClassVar[tuple[PolicyRef, ...]] = ()

    __repr__ = repr_of_named

    @property
    def block(self) -> Block:
        """Return the precedence of its rules."""
        return self.written or Block.DEFAULTS

    @property
    def targets(self) -> tuple[RulesOfGateway | RulesOfRoute, ...]:
        return (self.target,)

    @property
    def origins(self) -> Iterator[Origin]:
        """Return the origins of its rules, in the order of the manifest."""
        return (self.origin(key) for key in self.rules)

    def origin(self, key: RuleKey) -> Origin:
        """Return the origin of one of its rules."""
        return Origin(self.ref, list(self.rules).index(key), self.rules[key].span, derived=RuleOfPolicy(str(key)))
