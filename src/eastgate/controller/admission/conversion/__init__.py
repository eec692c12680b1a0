"""Conversion of stored policies between the versions of their kind, for the API server.

The conversion is total: every stored policy has a form in every version, since one object without a form would make
every list fail. An annotation holds the parts that a version cannot express. The form without the annotation never
allows more than the original.
"""

from eastgate.controller.admission.conversion.objects import (
    ConversionError,
    answer_conversion,
    answer_large_conversion,
    convert_object,
)

__all__ = ["ConversionError", "answer_conversion", "answer_large_conversion", "convert_object"]
