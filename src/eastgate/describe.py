"""Descriptions and listings, which `Authority.describe` and `Authority.get` return."""

from eastgate.basics.public import publish
from eastgate.reports.describe import DescribedField, Description
from eastgate.reports.get import Listed, Listing

__all__ = ["DescribedField", "Description", "Listed", "Listing"]

publish(globals())
