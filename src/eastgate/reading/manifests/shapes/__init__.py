"""Shapes: one description of each resource for validation, schemas and documentation."""

from eastgate.reading.manifests.shapes.constraints import Cel, Constraint, all_of, constraint, not_empty
from eastgate.reading.manifests.shapes.shape import (
    Anything,
    Check,
    Choice,
    Field,
    Flag,
    ListOf,
    MapOf,
    Record,
    Shape,
    Text,
    Whole,
    check,
    enumerated,
    quoted,
)

__all__ = [
    "Anything",
    "Cel",
    "Check",
    "Choice",
    "Constraint",
    "Field",
    "Flag",
    "ListOf",
    "MapOf",
    "Record",
    "Shape",
    "Text",
    "Whole",
    "all_of",
    "check",
    "constraint",
    "enumerated",
    "not_empty",
    "quoted",
]
