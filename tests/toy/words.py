"""The description of guest lists in words."""

from __future__ import annotations

from eastgate.dialects.words import NO_RULES, NOTHING_SELECTED, Words, describe_rules
from tests.toy.model import GuestList

__all__ = ["WORDS"]


def _why_idle(_policy: GuestList, problem: str | None, selects: bool) -> str:
    return NO_RULES if selects else problem or NOTHING_SELECTED


WORDS: Words[GuestList] = Words(
    action=lambda _policy: "ALLOW",
    level=lambda _policy: "guests",
    rules=lambda policy: describe_rules("ALLOW", policy.rules),
    why_idle=_why_idle,
)
