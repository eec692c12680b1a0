"""The placements of GEP-3779's layers, and the settings that shape them: as structured data, with text in `str`."""

from __future__ import annotations

import enum
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.dialects.gep3779.model import Level
from eastgate.dialects.gep3779.settings import DenyOnly
from eastgate.ir import Placement, Site

PLACEMENTS = {level: Placement(Site.WORKLOAD, level) for level in Level}


class StageName(enum.StrEnum):
    """The stages of a level."""

    AUDIT = "audit"
    ADMIN = "admin"
    BASELINE = "baseline"
    DENY = "deny"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class DenyOnlyReading:
    """The value of `denyOnly` for a layer of a workload that only DENY policies target."""

    choice: DenyOnly
    setting: ClassVar[str] = "denyOnly"

    def __str__(self) -> str:
        return f"{self.setting}: {self.choice} (only DENY policies target this workload)"
