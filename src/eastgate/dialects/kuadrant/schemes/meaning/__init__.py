"""Converts checked auth schemes to their model."""

from eastgate.dialects.kuadrant.schemes.meaning.scheme import SchemeSection, read_scheme, scheme_from

__all__ = ["SchemeSection", "read_scheme", "scheme_from"]
