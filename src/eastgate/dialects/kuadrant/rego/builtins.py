"""All built-in functions by name, with their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eastgate.dialects.kuadrant.rego.functions import collections, encodings, numbers, places, strings
from eastgate.dialects.kuadrant.rego.functions.collections import walked
from eastgate.dialects.kuadrant.rego.functions.registry import REGISTERED, Bounded, Failed
from eastgate.dialects.kuadrant.rego.values import Value

__all__ = ["ACCEPTED", "ARITIES", "FUNCTIONS", "RESULTS", "Bounded", "Failed", "walked"]

_DECLARED: Final = (collections, encodings, numbers, places, strings)  # the imports fill the registry

FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {name: function.call for name, function in REGISTERED.items()}
ACCEPTED: Final = {name: function.accepts for name, function in REGISTERED.items()}
RESULTS: Final = {name: function.result for name, function in REGISTERED.items() if function.result is not None}
ARITIES: Final = {name: len(function.accepts) for name, function in REGISTERED.items()} | {"walk": 1, "time.now_ns": 0}
