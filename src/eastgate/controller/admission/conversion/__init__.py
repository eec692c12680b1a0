"""Conversion of stored policies between the versions of their kind, for the API server.

It is total: whatever is stored has a form in every version, since one object without would make every list fail. What a
version cannot say travels in an annotation, and the form without it never allows more than the original.
"""

from eastgate.controller.admission.conversion.objects import (
    ConversionError,
    answer_conversion,
    answer_large_conversion,
    convert_object,
)

__all__ = ["ConversionError", "answer_conversion", "answer_large_conversion", "convert_object"]
