"""Policies in the words of another API. What the other one cannot say is a loss; nothing ever becomes wider."""

from eastgate.convert.model import Assumption, Options
from eastgate.convert.registry import KINDS
from eastgate.convert.run import Conversion, convert

__all__ = ["KINDS", "Assumption", "Conversion", "Options", "convert"]
