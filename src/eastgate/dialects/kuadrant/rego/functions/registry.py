"""Declares built-in functions: the name, the types of its arguments, and the type of its result."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from eastgate.dialects.kuadrant.rego.values import Object, Set, Value

MAX_ITEMS: Final = 10_000
MAX_TEXT: Final = 1 << 20


class Failed(Exception):  # noqa: N818 - the call gives nothing, as in OPA
    """The function errs for these arguments."""


class Bounded(Exception):  # noqa: N818 - there is no answer
    """The function would exceed a limit, or may differ from OPA's. The message contains no value."""


class BuiltIn(NamedTuple):
    """A function with the types of its arguments and its result. None means any type."""

    accepts: tuple[frozenset[str] | None, ...]
    result: str | None
    call: Callable[..., Value]


REGISTERED: Final[dict[str, BuiltIn]] = {}


def function(name: str, *accepts: str, result: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function.

    Types are written `string`, `array|set`, or `any`. For values of other types the function errs.
    """
    types = tuple(None if type_names == "any" else frozenset(type_names.split("|")) for type_names in accepts)

    def register(call: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*values: Value) -> Value:
            for value, possible in zip(values, types, strict=True):
                if possible is not None and type_of(value) not in possible:
                    raise Failed
            answer: Value = call(*values)
            if isinstance(answer, str) and len(answer) > MAX_TEXT:
                raise Bounded("it makes a text that is too long")
            if isinstance(answer, tuple | Set | Object) and len(answer) > MAX_ITEMS:
                raise Bounded("it makes a collection that is too large")
            return answer

        REGISTERED[name] = BuiltIn(types, result, checked)
        return call

    return register


def integer(value: int | Decimal) -> int:
    """Return an integer of 64 bits. For other numbers, a function with an integer argument errs."""
    if not isinstance(value, int) or abs(value) >= 2**63:
        raise Failed
    return value


def type_of(value: Value) -> str:
    """Return the name of a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | Decimal():
            return "number"
        case str():
            return "string"
        case tuple():
            return "array"
        case Object():
            return "object"
    return "set"
