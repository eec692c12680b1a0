"""The settings that only AccessPolicy reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eastgate.settings import Section

__all__ = ["AccessSettings", "UnlistedCaller"]


class UnlistedCaller(StrEnum):
    """What becomes of a caller whom no InlineTools rule of a level names."""

    DENY = "deny"
    PROCEED = "proceed"


@dataclass(frozen=True, slots=True)
class AccessSettings(Section):
    """How AccessPolicy is read where it can be read in two ways."""

    unlisted_caller: UnlistedCaller = UnlistedCaller.DENY
