"""Two sets of policies compared: which requests change their verdict, as people say it.

`grouping` merges the differences that `eastgate.reach` finds, `model` has the result, and `text`, `markdown` and
`findings` write it.
"""

from eastgate.reports.diff.model import DiffReport, Unproven, VerdictChange
from eastgate.reports.diff.run import diff

__all__ = ["DiffReport", "Unproven", "VerdictChange", "diff"]
