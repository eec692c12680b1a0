"""Who may reach what, by which rule: computed from the layers, exactly."""

from eastgate.reports.effective.callers import CallerEntry
from eastgate.reports.effective.folding import Branch, Ending
from eastgate.reports.effective.render import span_text, table_text, table_to_json
from eastgate.reports.effective.table import (
    Cell,
    EffectiveDestination,
    EffectiveTable,
    EnforcementPoint,
    Row,
    destinations_at,
    effective_table,
)
from eastgate.symbolic.partial import Facts

__all__ = [
    "Branch",
    "CallerEntry",
    "Cell",
    "EffectiveDestination",
    "EffectiveTable",
    "Ending",
    "EnforcementPoint",
    "Facts",
    "Row",
    "destinations_at",
    "effective_table",
    "span_text",
    "table_text",
    "table_to_json",
]
