"""The placements of GEP-3779's layers, and the readings that shape them: as data, with words for people in `str`."""

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
    """The reading of `denyOnly` that shaped a layer: only DENY policies target its workload."""

    choice: DenyOnly
    setting: ClassVar[str] = "denyOnly"

    def __str__(self) -> str:
        return f"{self.setting}: {self.choice} (only DENY policies target this workload)"
