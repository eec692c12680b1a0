"""Renders values as text."""

from __future__ import annotations

import json
from decimal import Decimal

from eastgate.dialects.kuadrant.rego.functions.registry import Bounded
from eastgate.dialects.kuadrant.rego.values import Object, Set, Value, magnitude

_LARGE = 10**21


def marshalled(value: Value) -> str:
    """Return JSON as Go writes it: compact, with sorted keys, and with HTML characters escaped."""
    match value:
        case tuple() | Set():
            return "[" + ",".join(map(marshalled, value)) + "]"
        case Object():
            pairs = {key if isinstance(key, str) else marshalled(key): item for key, item in value.items()}
            return "{" + ",".join(f"{_quoted(key)}:{marshalled(pairs[key])}" for key in sorted(pairs)) + "}"
        case str():
            return _quoted(value)
        case int() | Decimal() if not isinstance(value, bool):
            return written_number(value)
    return json.dumps(value)


def _quoted(text: str) -> str:
    encoded = json.dumps(text, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return encoded


def written_number(value: int | Decimal) -> str:
    """Return the digits of a number, with an exponent if it is very small."""
    if magnitude(value) >= _LARGE:
        raise Bounded("it writes numbers that are too large")
    if isinstance(value, int):
        return str(value)
    if abs(value) < Decimal("1e-6"):
        digits, _, exponent = f"{value.normalize():e}".partition("e")
        return f"{digits}e{int(exponent)}"
    return f"{value.normalize():f}"


def shown(value: Value) -> str:
    """Return a value as Rego writes it."""
    match value:
        case tuple():
            return "[" + ", ".join(map(shown, value)) + "]"
        case Set():
            return "{" + ", ".join(map(shown, value)) + "}" if len(value) else "set()"
        case Object():
            return "{" + ", ".join(f"{shown(key)}: {shown(item)}" for key, item in value.items()) + "}"
        case str():
            return json.dumps(value, ensure_ascii=False)
    return marshalled(value)
