"""The difference between two authorities, which `Authority.diff` returns."""

from eastgate.basics.public import publish
from eastgate.reach.comparison import DoubtReason
from eastgate.reports.diff.model import (
    ChangedPorts,
    ChangedRequests,
    DiffReport,
    FailOn,
    InventedWorkloads,
    SideVerdict,
    Unproven,
    VerdictChange,
)
from eastgate.reports.diff.words import markdown

__all__ = [
    "ChangedPorts",
    "ChangedRequests",
    "DiffReport",
    "DoubtReason",
    "FailOn",
    "InventedWorkloads",
    "SideVerdict",
    "Unproven",
    "VerdictChange",
    "markdown",
]

publish(globals())
