"""What dialects and lint have in common: findings, what every dialect tells of its policies, and what checks may ask.

A dialect's own checks need nothing else of lint.
"""

from eastgate.dialects.linting.context import Check, Context, Decider, Group, enumerated, subject_of
from eastgate.dialects.linting.findings import Example, Finding
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
    "Example",
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
