"""Findings about policies, which `Authority.lint` returns."""

from eastgate.basics.public import publish
from eastgate.reports.lint import Finding

__all__ = ["Finding"]

publish(globals())
