"""Descriptions of one object: its identity, what affects it, who may reach it. Start reading at `pods.py`."""

from eastgate.reports.describe.model import Description, Field
from eastgate.reports.describe.subjects import KINDS, UnknownKind, describe, names_of

__all__ = ["KINDS", "Description", "Field", "UnknownKind", "describe", "names_of"]
