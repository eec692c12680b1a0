"""What is understood and probably not meant so: rules without effect, targets that select nothing, and more.

`checks.py` is the table of the general checks, each family of which is a file. Each dialect brings its own checks and
what the general ones must know of its policies (`dialects/<name>/lint.py`, in the terms of `dialects/linting`).

    run          runs all checks, and sorts what they find
    checks       the table; targets, callers, rules, shadowing, lockout, layers, readings, gateways have the checks
    inventory    what the checks look at: the policies, classes of workloads, and what exists
    context      what the dialects' checks may ask beside
    hooks        what the dialects tell of their policies
    statements, labels, samples, chains, possible, solving   what checks share
    suppression, report, sarif                               what becomes of findings
"""

from eastgate.dialects.linting import Finding
from eastgate.reports.lint.run import lint

__all__ = ["Finding", "lint"]
