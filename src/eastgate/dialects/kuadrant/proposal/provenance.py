"""The placements and the origins of AuthPolicy's layers and rules: as structured data, with text in `str`."""

from __future__ import annotations

import enum
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.ir import ImpliedRule, Placement, RuleKind, Site

AT_GATEWAY = Placement(Site.GATEWAY, "auth")
AT_ROUTE = Placement(Site.ROUTE, "auth")


class StageName(enum.StrEnum):
    """The stages of a Gateway or a route."""

    AUDIT = "audit"
    NO_SCHEME = "no-scheme"
    AUTH = "auth"


@dataclass(frozen=True, slots=True)
class SchemeNumber:
    """The index of one of a policy's auth schemes, from 0."""

    index: int
    kind: ClassVar[RuleKind] = RuleKind.SCHEME

    def __str__(self) -> str:
        return f"auth scheme {self.index + 1}"


WITHOUT_SCHEME = ImpliedRule(RuleKind.UNCOVERED, "without an auth scheme for this host")
"""The rule for requests that a policy selects and that have no scheme."""
