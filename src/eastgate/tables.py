"""Decision tables, invariants and their results, which `eastgate.test` returns."""

from eastgate.basics.public import publish
from eastgate.reports.invariants.future import ImaginedPod
from eastgate.reports.invariants.objects import Counterexample, StatementFinding, StatementStanding
from eastgate.reports.tables import BadCase, Case, Coverage, Rejection, Result, Run, Table

__all__ = [
    "BadCase",
    "Case",
    "Counterexample",
    "Coverage",
    "ImaginedPod",
    "Rejection",
    "Result",
    "Run",
    "StatementFinding",
    "StatementStanding",
    "Table",
]

publish(globals())
