"""Descriptions of one object: its identity, the policies that affect it, and its callers.

Start reading at `pods.py`.
"""

from eastgate.reports.describe.model import DescribedField, Description
from eastgate.reports.describe.subjects import KINDS, describe, names_of
from eastgate.reports.kinds import UnknownKind

__all__ = ["KINDS", "DescribedField", "Description", "UnknownKind", "describe", "names_of"]
