"""Semantic admission: finds the requests that a change opens or closes, and the Invariants that it breaks.

Read `model` (a change, its judgement, and the standing of Invariants), `judge` (the comparison of two authorities) and
`words` (warnings).
"""

from eastgate.controller.admission.semantic.judge import Judge
from eastgate.controller.admission.semantic.model import (
    ChangeJudgement,
    InvariantStanding,
    ObjectChange,
    Standings,
)

__all__ = ["ChangeJudgement", "InvariantStanding", "Judge", "ObjectChange", "Standings"]
