"""The placements of AccessPolicy's layers, and the setting that shapes them: as structured data, with text in `str`."""

from __future__ import annotations

import enum
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.dialects.accesspolicy.settings import UnlistedCaller
from eastgate.ir import Placement, Site

AT_GATEWAY = Placement(Site.GATEWAY, "access")
AT_BACKEND = Placement(Site.BACKEND, "access")


class StageName(enum.StrEnum):
    """The stages of a Gateway or a Backend."""

    AUDIT = "audit"
    NOT_GRANTED = "external-auth-not-granted"
    EXTERNAL_AUTH = "external-auth"
    DENY = "deny"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class UnlistedCallerReading:
    """The value of `unlistedCaller` for a layer."""

    choice: UnlistedCaller
    setting: ClassVar[str] = "unlistedCaller"

    def __str__(self) -> str:
        return f"{self.setting}: {self.choice}"
