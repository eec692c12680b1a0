"""Outcomes: the decision on a request, of one layer and of all."""

from __future__ import annotations

import enum
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.ir.rules import Rule


class UnaskedRefusal(enum.StrEnum):
    """Why a request was refused before any rule was asked. An outcome has it instead of the name of a stage."""

    HOST = "bad-host"
    SPELLING = "encoded-path"


class Unroutable(enum.StrEnum):
    """Why a request leads nowhere. Stages that refuse such requests are named so."""

    NO_ROUTE = "no-route"
    NO_INBOUND_ROUTE = "no-inbound-route"
    NO_BACKEND = "no-backend"
    REFERENCE_NOT_GRANTED = "reference-not-granted"
    BACKEND_NOT_DECLARED = "backend-not-declared"
    UNSUPPORTED_FILTER = "unsupported-filter"
    NO_HOST_POLICY = "no-host-policy"


REFUSED_HOST: Final = UnaskedRefusal.HOST
REFUSED_SPELLING: Final = UnaskedRefusal.SPELLING


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision of one layer. `rule` is the rule that decided; None where a default did, or no rule applied."""

    allowed: bool
    layer: str | None = None
    stage: str | None = None
    rule: Rule | None = None
    refusal: int | None = None

    @property
    def is_unasked(self) -> bool:
        """Return whether the request was refused before any rule was asked."""
        return not self.allowed and self.rule is None and self.stage in (None, REFUSED_HOST, REFUSED_SPELLING)

    @property
    def status(self) -> int:
        """Return the status that the client sees: 200 where allowed, otherwise the refusal (0: a closed connection)."""
        return 200 if self.refusal is None else int(self.refusal)


UNOPPOSED: Final = Outcome(allowed=True)  # no policy, or none that denies or accepts
