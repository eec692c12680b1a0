"""The placement and the origins of the layer at a rule of a route: as structured data, with text in `str`."""

from __future__ import annotations

import enum
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.ir import Placement, PolicyRef, RuleKind, ScopeKind, Site

AT_RULE = Placement(Site.ROUTE, "effective-auth")


class StageName(enum.StrEnum):
    """The stages of a rule of a route."""

    AUDIT = "audit"
    AUTH = "auth"


@dataclass(frozen=True, slots=True)
class RuleOfPolicy:
    """One rule of a policy, by its key."""

    key: str
    kind: ClassVar[RuleKind] = RuleKind.SCHEME

    def __str__(self) -> str:
        return self.key


@dataclass(frozen=True, slots=True)
class EffectiveRules:
    """All rules of the effective policy."""

    policies: tuple[PolicyRef, ...]
    kind: ClassVar[RuleKind] = RuleKind.SCHEME

    def __str__(self) -> str:
        if len(self.policies) == 1:
            return "the effective policy"
        return f"the effective policy, with rules of {', '.join(map(str, self.policies))}"


@dataclass(frozen=True, slots=True)
class EffectiveScope:
    """The reason why these rules are asked: the policies with rules in force, and the overridden policies."""

    refs: tuple[PolicyRef, ...]
    overridden: tuple[PolicyRef, ...] = ()
    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS

    def __str__(self) -> str:
        named = "the effective policy of " + " and ".join(map(str, self.refs))
        if not self.overridden:
            return named
        return f"{named}; no rule of {' and '.join(map(str, self.overridden))} is in force"
