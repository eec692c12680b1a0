"""Invariants: statements about all requests, which hold, or fail with a request that breaks them.

Read `model` (what is stated), `callers`, `future` and `requests` (whom and what it is about), `proving` (does it hold),
`report` (why not).
"""

from eastgate.reports.invariants.model import Statement
from eastgate.reports.invariants.objects import StatementFinding, StatementStanding
from eastgate.reports.invariants.proving import prove

__all__ = ["Statement", "StatementFinding", "StatementStanding", "prove"]
