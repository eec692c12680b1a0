"""Findings about policies that are valid but probably wrong: rules without effect, empty targets, and more.

The general checks are in this package. Each dialect adds its own checks, and hooks for the general ones, in
`dialects/<name>/lint.py`. The types of these hooks are in `dialects/linting`.

- `run` has the table of the general checks. It runs all checks, and sorts their findings.
- `targets`, `rules`, `chains`, `layers` and `readings` have the checks.
- `inventory` is their input: the policies, the classes of workloads, and the existing objects.
- `samples` and `solving` find requests for the checks.
- `suppression`, `report` and `sarif` process the findings.
"""

from eastgate.dialects.linting import Finding
from eastgate.reports.lint.run import lint

__all__ = ["Finding", "lint"]
