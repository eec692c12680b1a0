"""Comparison of two sets of policies: the requests that change their verdict.

`grouping` merges the differences that `eastgate.reach` finds, `model` has the result, and `text`, `markdown` and
`findings` write it.
"""

from eastgate.reports.diff.model import DiffReport, Unproven, VerdictChange
from eastgate.reports.diff.run import diff

__all__ = ["DiffReport", "Unproven", "VerdictChange", "diff"]
