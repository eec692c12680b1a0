"""The facts that lint needs about guest lists."""

from __future__ import annotations

from eastgate.dialects.linting import Linting, Statements, naming_of
from tests.toy.model import GuestList

__all__ = ["LINTING"]


def _statements(policy: GuestList) -> Statements:
    return Statements(
        rules=policy.rules,
        naming=naming_of(policy.rules),
        targets=policy.targets,
        target_field="app",
        allows=True,
        empty_list=None,
    )


LINTING: Linting[GuestList] = Linting(
    statements=_statements,
    blames=lambda policy, _layer: isinstance(policy, GuestList),
    readings=(),
    fallback=None,
    checks=(),
    codes=(),
)
