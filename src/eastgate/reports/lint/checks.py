"""The checks that hold for policies of any dialect, in one table. What only one dialect has is in its `lint.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from eastgate.dialects.linting import Finding
from eastgate.reports.lint.callers import find_unknown_callers
from eastgate.reports.lint.gateways import find_unprotected
from eastgate.reports.lint.inventory import PolicyInventory
from eastgate.reports.lint.layers import find_disagreements
from eastgate.reports.lint.lockout import find_closed_points
from eastgate.reports.lint.readings import find_audit_changes, find_reading_differences
from eastgate.reports.lint.rules import find_impossible_rules, find_unexposed_ports
from eastgate.reports.lint.shadowing import find_shadowed_rules
from eastgate.reports.lint.targets import find_empty_targets, find_unenforced

Check: TypeAlias = Callable[[PolicyInventory], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    find_empty_targets,  # EG6001, EG6002, EG6007: targets that lead to nothing, and labels that look misspelt
    find_unenforced,  # EG6008: pods of a cluster without a proxy that would enforce
    find_unknown_callers,  # EG6004 to EG6007: accounts, namespaces and trust domains that do not exist
    find_impossible_rules,  # EG6020, EG6021: rules that no request matches, wherever they apply
    find_unexposed_ports,  # EG6003: ports that no selected workload exposes
    find_shadowed_rules,  # EG6022 to EG6024: rules that others decide before, or cover
    find_closed_points,  # EG6040: points that nothing can reach
    find_disagreements,  # EG6041: what one dialect allows and another denies
    find_reading_differences,  # where two readings of a specification differ, with a code for each
    find_audit_changes,  # EG6046: what audited policies would change
    find_unprotected,  # EG6060: routes without a policy beside those that have one
)
