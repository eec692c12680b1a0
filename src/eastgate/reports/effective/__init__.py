"""Who may reach what, by which rule: computed from the layers, exactly."""

from eastgate.reports.effective.callers import CallerEntry
from eastgate.reports.effective.folding import Branch, Ending
from eastgate.reports.effective.render import place_text, table_text, table_to_json
from eastgate.reports.effective.table import Cell, Destination, Place, Row, Table, effective, to_ports
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
