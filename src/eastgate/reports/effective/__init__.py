"""Tables of who may reach what, for people and as plain data."""

from eastgate.reports.effective.render import span_text, table_text, table_to_json

__all__ = ["span_text", "table_text", "table_to_json"]
