"""Decision tables: tests of policies, for users and for this project."""

from eastgate.reports.tables.model import BadCase, Case, Coverage, Rejection, Table
from eastgate.reports.tables.read import read_tables
from eastgate.reports.tables.run import Result, Run, run_tables

__all__ = ["BadCase", "Case", "Coverage", "Rejection", "Result", "Run", "Table", "read_tables", "run_tables"]
