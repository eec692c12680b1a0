"""The interface of lint and dialects: findings, the hooks that every dialect brings, and the context of checks.

A dialect's own checks need nothing else of lint.
"""

from eastgate.dialects.linting.context import Check, Context, Decider, Group, enumerated, subject_of
from eastgate.dialects.linting.findings import Finding
from eastgate.dialects.linting.hooks import (
    EmptyList,
    Fallback,
    Linting,
    Naming,
    Reading,
    Statements,
    is_shaped,
    naming_of,
)

__all__ = [
    "Check",
    "Context",
    "Decider",
    "EmptyList",
    "Fallback",
    "Finding",
    "Group",
    "Linting",
    "Naming",
    "Reading",
    "Statements",
    "enumerated",
    "is_shaped",
    "naming_of",
    "subject_of",
]
