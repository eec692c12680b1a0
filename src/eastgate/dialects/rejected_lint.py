"""What lint knows of policies that cannot be read: nothing but that they are there."""

from __future__ import annotations

from eastgate.dialects.linting import Linting, Statements
from eastgate.dialects.rejected import Policy
from eastgate.policy import Layer

__all__ = ["LINTING"]


def _statements(_policy: Policy) -> Statements:
    return Statements(rules=(), naming=(), targets=(), target_field="targetRefs", allows=False, empty_list=None)


def _governs(_policy: Policy, _layer: Layer) -> bool:
    return True


def _enforced(policy: Policy) -> Policy:
    return policy  # it is never in audit mode


LINTING: Linting[Policy] = Linting(
    model=Policy,
    statements=_statements,
    governs=_governs,
    enforced=_enforced,
    readings=(),
    fallback=None,
    checks=(),
    codes=(),
)
