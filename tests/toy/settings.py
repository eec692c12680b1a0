"""The one setting of guest lists: `--set guestRefusal=forbidden` answers 403 where others close the connection."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eastgate.settings import Section

__all__ = ["GuestRefusal", "ToySettings"]


class GuestRefusal(StrEnum):
    """What becomes of somebody who is on no list."""

    CLOSED = "closed"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True)
class ToySettings(Section):
    """How guest lists are enforced."""

    guest_refusal: GuestRefusal = GuestRefusal.CLOSED
