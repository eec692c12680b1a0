"""What came of a request: at one layer, and in all."""

from __future__ import annotations

import enum
from typing import Final

from eastgate.ir.rules import Rule
from eastgate.records import dataclass

__all__ = ["REFUSED_HOST", "REFUSED_SPELLING", "UNOPPOSED", "Outcome", "UnaskedRefusal", "Unroutable"]


class UnaskedRefusal(enum.StrEnum):
    """Why no rule was asked. It stands in the place of a stage's name."""

    HOST = "bad-host"
    SPELLING = "encoded-path"


class Unroutable(enum.StrEnum):
    """Why a request leads nowhere. Stages that refuse such requests are named so."""

    NO_ROUTE = "no-route"
    NO_INBOUND_ROUTE = "no-inbound-route"
    NO_BACKEND = "no-backend"
    REFERENCE_NOT_GRANTED = "reference-not-granted"
    BACKEND_NOT_DECLARED = "backend-not-declared"


REFUSED_HOST: Final = UnaskedRefusal.HOST
REFUSED_SPELLING: Final = UnaskedRefusal.SPELLING


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one layer says. `rule` is the rule that decided; None where a default did, or nothing was in the way."""

    allowed: bool
    layer: str | None = None
    stage: str | None = None
    rule: Rule | None = None
    refusal: int | None = None

    @property
    def is_unasked(self) -> bool:
        """Whether the request was refused before any rule was asked."""
        return not self.allowed and self.rule is None and self.stage in (None, REFUSED_HOST, REFUSED_SPELLING)

    @property
    def status(self) -> int:
        """What the client sees: 200 where allowed, otherwise the refusal (0 is a closed connection)."""
        return 200 if self.refusal is None else int(self.refusal)


UNOPPOSED: Final = Outcome(allowed=True)  # nothing was in the way: no policy, or none that says no
