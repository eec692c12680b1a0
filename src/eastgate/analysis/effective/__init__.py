"""Who may reach what, by which rule: computed from the layers, exactly."""

from eastgate.analysis.effective.callers import CallerEntry
from eastgate.analysis.effective.folding import Branch, Ending
from eastgate.analysis.effective.render import place_text, table_text, table_to_json
from eastgate.analysis.effective.table import Cell, Destination, Place, Row, Table, effective, to_ports
from eastgate.symbolic.partial import Facts

__all__ = [
    "Branch",
    "CallerEntry",
    "Cell",
    "Destination",
    "Ending",
    "Facts",
    "Place",
    "Row",
    "Table",
    "effective",
    "place_text",
    "table_text",
    "table_to_json",
    "to_ports",
]
