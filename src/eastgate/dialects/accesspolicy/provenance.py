"""Where the layers of AccessPolicy stand, and which readings of it shape them: as data, with words in `str`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eastgate.policy import Placement, Site
from eastgate.settings import UnlistedCaller

__all__ = ["AT_BACKEND", "AT_GATEWAY", "UnlistedCallerReading"]

AT_GATEWAY = Placement(Site.GATEWAY, "access")
AT_BACKEND = Placement(Site.BACKEND, "access")


@dataclass(frozen=True, slots=True)
class UnlistedCallerReading:
    """What becomes of callers whom no allowing policy lists."""

    choice: UnlistedCaller
    setting: ClassVar[str] = "unlistedCaller"

    def __str__(self) -> str:
        return f"{self.setting}: {self.choice}"
