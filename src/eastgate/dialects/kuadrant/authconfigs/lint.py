"""AuthConfigs for lint."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authconfigs import lint_codes as codes
from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.dialects.linting import Linting, Statements

__all__ = ["LINTING"]


def _statements(_policy: Policy) -> Statements:
    """Return no statements: a scheme decides for itself."""
    return Statements(rules=(), naming=(), targets=(), target_field="hosts", allows=False, empty_list=None)


LINTING: Linting[Policy] = Linting(
    statements=_statements,
    blames=lambda _policy, _layer: True,
    readings=(),
    fallback=None,
    checks=(),
    codes=(codes,),
)
