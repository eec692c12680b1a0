"""The interface between lint and dialects: findings, the hooks of every dialect, and the context of checks.

The checks of a dialect need no other part of lint.
"""

from eastgate.dialects.linting.context import Check, Context, Group, GroupDecider, enumerated, subject_of
from eastgate.dialects.linting.findings import Finding
from eastgate.dialects.linting.hooks import (
    EmptyList,
    Fallback,
    Linting,
    NamedAccount,
    Naming,
    ReadingChoice,
    Statements,
    is_shaped,
    naming_of,
)

__all__ = [
    "Check",
    "Context",
    "EmptyList",
    "Fallback",
    "Finding",
    "Group",
    "GroupDecider",
    "Linting",
    "NamedAccount",
    "Naming",
    "ReadingChoice",
    "Statements",
    "enumerated",
    "is_shaped",
    "naming_of",
    "subject_of",
]
