"""The hooks of lint for network policies."""

from __future__ import annotations

from eastgate.dialects.base import Policy
from eastgate.dialects.linting import Linting, Statements
from eastgate.dialects.network.model import NetworkPolicy
from eastgate.ir import Layer

__all__ = ["LINTING"]


def _statements(policy: NetworkPolicy) -> Statements:
    return Statements(
        rules=(),
        naming=(),
        targets=policy.targets,
        target_field="podSelector" if policy.isolates else "subject",
        allows=False,
        empty_list=None,
    )


def _blames(policy: Policy, _layer: Layer) -> bool:
    return isinstance(policy, NetworkPolicy)


LINTING: Linting[NetworkPolicy] = Linting(
    statements=_statements,
    blames=_blames,
    readings=(),
    fallback=None,
    checks=(),
    codes=(),
)
