"""The only setting of guest lists: `--set guestRefusal=forbidden` answers 403 instead of closing the connection."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eastgate.settings import Section

__all__ = ["GuestRefusal", "ToySettings"]


class GuestRefusal(StrEnum):
    """The refusal for a caller that no list names."""

    CLOSED = "closed"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class ToySettings(Section):
    """The settings for the enforcement of guest lists."""

    guest_refusal: GuestRefusal = GuestRefusal.CLOSED
