"""The GEP-3779 policy in one model for all of its forms."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import ClassVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.targets import Target
from eastgate.ir import Origin, PolicyRef, Rule, repr_of_named


class Level(enum.StrEnum):
    """The level of enforcement: L4 or L7."""

    NETWORK = "network"
    APPLICATION = "application"


class Action(enum.StrEnum):
    """The effect of a policy on the requests that its rules match. Only cluster policies have PASS."""

    ALLOW = "ALLOW"
    DENY = "DENY"
    PASS = "PASS"  # noqa: S105 - not a password


class Tier(enum.StrEnum):
    """The order of evaluation: Admin is first and final; Baseline applies only if no namespaced policy does."""

    ADMIN = "Admin"
    NAMESPACED = "Namespaced"
    BASELINE = "Baseline"


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A policy. Two policies are equal only if they are the same object: a changed policy is another object."""

    ref: PolicyRef
    span: Span
    targets: tuple[Target, ...]
    action: Action
    level: Level
    rules: tuple[Rule, ...]
    tier: Tier = Tier.NAMESPACED
    priority: int = 0
    audit: bool = False

    references: ClassVar[tuple[PolicyRef, ...]] = ()

    __repr__ = repr_of_named

    @property
    def origins(self) -> Iterator[Origin]:
        """Return the origins of its rules."""
        return (rule.origin for rule in self.rules)
