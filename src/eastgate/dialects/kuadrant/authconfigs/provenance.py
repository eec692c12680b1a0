"""The placement and the origins of the layer of a host: as structured data, with text in `str`."""

from __future__ import annotations

import enum
from dataclasses import field
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.ir import ImpliedRule, Placement, PolicyRef, RuleKind, ScopeKind

AT_HOST = Placement(None, "authorino")


class StageName(enum.StrEnum):
    """The stages of a host."""

    AUDIT = "audit"
    LINKED = "linked"
    AUTH = "auth"


WHOLE_SCHEME = ImpliedRule(RuleKind.SCHEME, "scheme")
"""The whole auth scheme of an AuthConfig."""


@dataclass(frozen=True, slots=True)
class LinkedElsewhere:
    """The refusal by an AuthConfig that is asked about a host which is linked to another one."""

    host: str
    kind: ClassVar[RuleKind] = RuleKind.UNCOVERED

    def __str__(self) -> str:
        return f"(the host {self.host} is linked to it, and not to the AuthConfig that is asked about)"


@dataclass(frozen=True, slots=True)
class LinkedHost:
    """The reason why an AuthConfig is asked: the host that is linked to it, and the other AuthConfigs with the host."""

    host: str = field(compare=False)
    config: PolicyRef
    others: tuple[PolicyRef, ...] = field(compare=False)
    kind: ClassVar[ScopeKind] = ScopeKind.OTHERS

    @property
    def refs(self) -> tuple[PolicyRef, ...]:
        return (self.config,)

    def __str__(self) -> str:
        linked = f"{self.host} is linked to {self.config}"
        return f"{linked}, and not to {' or '.join(map(str, self.others))}" if self.others else linked
