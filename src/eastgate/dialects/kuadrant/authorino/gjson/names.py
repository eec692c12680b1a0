"""The names of all modifiers, which the syntax must know: a dot before one of them acts as a pipe."""

from __future__ import annotations

from typing import Final

GJSON_MODIFIERS: Final = frozenset(
    (
        "flatten",
        "fromstr",
        "group",
        "join",
        "keys",
        "pretty",
        "reverse",
        "this",
        "tostr",
        "ugly",
        "valid",
        "values",
    )
)
AUTHORINO_MODIFIERS: Final = frozenset(("base64", "case", "extract", "replace", "strip"))
MODIFIER_NAMES: Final = GJSON_MODIFIERS | AUTHORINO_MODIFIERS
