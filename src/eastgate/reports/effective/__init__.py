"""Effective tables: the callers of each destination, as text and as plain data."""

from eastgate.reports.effective.render import span_text, table_text, table_to_json

__all__ = ["span_text", "table_text", "table_to_json"]
