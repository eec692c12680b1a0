"""Invariants: statements about all requests, which hold, or fail with a counterexample.

Read `model` (the statements), `callers`, `future` and `requests` (their callers and requests), `proving` (the proof)
and `report` (the output).
"""

from eastgate.reports.invariants.model import Statement
from eastgate.reports.invariants.objects import StatementFinding, StatementStanding
from eastgate.reports.invariants.proving import prove

__all__ = ["Statement", "StatementFinding", "StatementStanding", "prove"]
