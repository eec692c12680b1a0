"""The hooks of lint for policies that cannot be read. Only their names are known."""

from __future__ import annotations

from eastgate.dialects.linting import Linting, Statements
from eastgate.dialects.rejected import RejectedPolicy


def _statements(_policy: RejectedPolicy) -> Statements:
    return Statements(rules=(), naming=(), targets=(), target_field="targetRefs", allows=False, empty_list=None)


LINTING: Linting[RejectedPolicy] = Linting(
    statements=_statements,
    blames=lambda _policy, _layer: True,
    readings=(),
    fallback=None,
    checks=(),
    codes=(),
)
