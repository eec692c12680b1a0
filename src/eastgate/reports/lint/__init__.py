"""Findings about policies that are valid and probably not meant so: rules without effect, empty targets, and more.

`checks.py` is the table of the general checks, each family of which is a file. Each dialect brings its own checks and
what the general ones must know of its policies (`dialects/<name>/lint.py`, in the terms of `dialects/linting`).

    run          runs all checks, and sorts their findings
    checks       the table; targets, callers, rules, shadowing, lockout, layers, readings, gateways have the checks
    inventory    what the checks look at: the policies, classes of workloads, and what exists
    context      what else the checks of dialects may ask
    hooks        what the dialects bring for lint
    statements, labels, samples, chains, possible, solving   what checks share
    suppression, report, sarif                               what is done with findings
"""

from eastgate.dialects.linting import Finding
from eastgate.reports.lint.run import lint

__all__ = ["Finding", "lint"]
