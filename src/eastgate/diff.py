"""The difference between two authorities, which `Authority.diff` returns."""

from eastgate.basics.public import publish
from eastgate.reach.comparison import DoubtReason
from eastgate.reports.diff.markdown import markdown
from eastgate.reports.diff.model import (
    ChangedPorts,
    ChangedRequests,
    DiffReport,
    FailOn,
    SideVerdict,
    Unproven,
    VerdictChange,
)

__all__ = [
    "ChangedPorts",
    "ChangedRequests",
    "DiffReport",
    "DoubtReason",
    "FailOn",
    "SideVerdict",
    "Unproven",
    "VerdictChange",
    "markdown",
]

publish(globals())
