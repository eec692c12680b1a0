"""From checked auth schemes to their model."""

from eastgate.dialects.kuadrant.schemes.meaning.scheme import Section, read_scheme, scheme_from

__all__ = ["Section", "read_scheme", "scheme_from"]
