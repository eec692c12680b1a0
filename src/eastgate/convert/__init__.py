"""Policies in the words of another API. What the other one cannot say is a loss; nothing ever becomes wider."""

from eastgate.convert.model import Assumption, Options, Written
from eastgate.convert.registry import KINDS
from eastgate.convert.run import Conversion, convert, convert_policies

__all__ = ["KINDS", "Assumption", "Conversion", "Options", "Written", "convert", "convert_policies"]
