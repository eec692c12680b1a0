"""Conversion of policies to another policy API. Each part that the target API cannot express is a loss; no result
allows more than its source.
"""

from eastgate.convert.model import Assumption, Options, Written
from eastgate.convert.registry import KINDS
from eastgate.convert.run import Conversion, convert, convert_policies

__all__ = ["KINDS", "Assumption", "Conversion", "Options", "Written", "convert", "convert_policies"]
