"""Invariants: statements about all requests, which hold, or fail with a request that breaks them.

Read `model` (what is stated), `callers`, `future` and `requests` (whom and what it is about), `proving` (does it hold),
`report` (why not).
"""

from eastgate.reports.invariants.model import Statement
from eastgate.reports.invariants.proving import prove
from eastgate.reports.invariants.standings import StatementFinding, StatementStanding

__all__ = ["Statement", "StatementFinding", "StatementStanding", "prove"]
