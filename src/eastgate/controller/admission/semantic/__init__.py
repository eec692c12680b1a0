"""Semantic admission: what a change opens and closes, and whether it breaks an Invariant.

Read `model` (a change, and what is said of it), `judge` (the two authorities that are compared), `words` (warnings) and
`standing` (Invariants, each time that something has changed).
"""

from eastgate.controller.admission.semantic.judge import Judge
from eastgate.controller.admission.semantic.model import (
    ChangeJudgement,
    InvariantStanding,
    ObjectChange,
    Standings,
)

__all__ = ["ChangeJudgement", "InvariantStanding", "Judge", "ObjectChange", "Standings"]
