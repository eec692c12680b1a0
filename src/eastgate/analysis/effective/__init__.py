"""Who may reach what, by which rule: computed from the layers, exactly."""

from eastgate.analysis.effective.branches import Branch, branches
from eastgate.analysis.effective.callers import Caller
from eastgate.analysis.effective.render import place_text, table_text, table_to_json
from eastgate.analysis.effective.residual import Facts
from eastgate.analysis.effective.table import Cell, Destination, Place, Row, Table, effective, to_ports

__all__ = [
    "Branch",
    "Caller",
    "Cell",
    "Destination",
    "Facts",
    "Place",
    "Row",
    "Table",
    "branches",
    "effective",
    "place_text",
    "table_text",
    "table_to_json",
    "to_ports",
]
