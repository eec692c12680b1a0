"""The settings that only AccessPolicy reads."""

from __future__ import annotations

from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.settings import Section

__all__ = ["AccessSettings", "UnlistedCaller"]


class UnlistedCaller(StrEnum):
    """The verdict on a caller that no InlineTools rule of a level names."""

    DENY = "deny"
    PROCEED = "proceed"


@dataclass(frozen=True, slots=True)
class AccessSettings(Section):
    """The setting for the ambiguity of AccessPolicy."""

    unlisted_caller: UnlistedCaller = UnlistedCaller.DENY
