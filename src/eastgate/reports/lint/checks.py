"""The checks that hold for policies of any dialect, in one table. What only one dialect has is in its `lint.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from eastgate.dialects.linting import Finding
from eastgate.reports.lint.callers import named_callers
from eastgate.reports.lint.gateways import unprotected
from eastgate.reports.lint.inventory import Inventory
from eastgate.reports.lint.layers import disagreeing_layers
from eastgate.reports.lint.lockout import locked_out
from eastgate.reports.lint.readings import audited, readings
from eastgate.reports.lint.rules import impossible_rules, unexposed_ports
from eastgate.reports.lint.shadowing import shadowed_rules
from eastgate.reports.lint.targets import empty_targets

__all__ = ["CHECKS"]

Check: TypeAlias = Callable[[Inventory], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    empty_targets,  # EG6001, EG6002, EG6007: targets that lead to nothing, and labels that look misspelt
    named_callers,  # EG6004 to EG6007: accounts, namespaces and trust domains that do not exist
    impossible_rules,  # EG6020, EG6021: rules that no request matches, wherever they apply
    unexposed_ports,  # EG6003: ports that no selected workload exposes
    shadowed_rules,  # EG6022 to EG6024: rules that others decide before, or cover
    locked_out,  # EG6040: points that nothing can reach
    disagreeing_layers,  # EG6041: what one dialect allows and another denies
    readings,  # where two readings of a specification differ, with a code for each
    audited,  # EG6046: what audited policies would change
    unprotected,  # EG6060: routes without a policy beside those that have one
)
