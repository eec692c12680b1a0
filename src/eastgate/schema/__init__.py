"""One description of each resource, from which it is checked (and, later, served and documented)."""

from eastgate.schema.shapes import (
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
    "Check",
    "Choice",
    "Field",
    "Flag",
    "ListOf",
    "MapOf",
    "Record",
    "Shape",
    "Text",
    "Whole",
    "check",
    "enumerated",
    "quoted",
]
