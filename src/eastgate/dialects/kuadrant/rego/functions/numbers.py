"""Built-in functions of numbers, and aggregates."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Final

from eastgate.dialects.kuadrant.rego.functions.registry import MAX_ITEMS, Bounded, Failed, function, integer
from eastgate.dialects.kuadrant.rego.values import Object, Set, Value, compare, in_order, magnitude, number

_MAX_EXACT_INTEGER: Final = 2**63
_BITS: Final = 64  # bits of OPA's numbers that are no integers
_DIGITS: Final = 22

Number = int | Decimal


@function("plus", "number", "number", result="number")
def plus(left: Number, right: Number) -> Value:
    return _exact(left + right) if isinstance(left, int) and isinstance(right, int) else _rounded(left, "+", right)


@function("minus", "number|set", "number|set")
def minus(left: Number | Set, right: Number | Set) -> Value:
    """Subtract numbers, or sets."""
    if isinstance(left, Set) and isinstance(right, Set):
        return Set(item for item in left if item not in right)
    if isinstance(left, Set) or isinstance(right, Set):
        raise Failed
    return _exact(left - right) if isinstance(left, int) and isinstance(right, int) else _rounded(left, "-", right)


@function("mul", "number", "number", result="number")
def mul(left: Number, right: Number) -> Value:
    return _exact(left * right) if isinstance(left, int) and isinstance(right, int) else _rounded(left, "*", right)


@function("div", "number", "number", result="number")
def div(left: Number, right: Number) -> Value:
    if right == 0:
        raise Failed
    return _rounded(left, "/", right)


@function("rem", "number", "number", result="number")
def rem(left: Number, right: Number) -> Value:
    """Return the remainder, with the sign of the left side."""
    if right == 0 or not isinstance(left, int) or not isinstance(right, int):
        raise Failed
    _exact(left)
    _exact(right)
    return (-1 if left < 0 else 1) * (abs(left) % abs(right))


def _exact(value: int) -> int:
    if abs(value) >= _MAX_EXACT_INTEGER:
        raise Bounded("it counts with numbers that are too large")
    return value


def _rounded(left: Number, operator: str, right: Number) -> Value:
    """Round as OPA does: to 64 bits, and to the fewest digits for the result."""
    first, second = (_in_bits(Fraction(side)) for side in (left, right))
    if max(abs(first), abs(second)) >= _MAX_EXACT_INTEGER:
        raise Bounded("it counts with numbers that are too large")
    exact = {"+": first + second, "-": first - second, "*": first * second}.get(operator)
    return _shortest(_in_bits(first / second if exact is None else exact))


def _in_bits(value: Fraction) -> Fraction:
    """Return the nearest number with a mantissa of 64 bits; of two, the even one."""
    if value == 0:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length() - _BITS
    scaled = value / Fraction(2) ** exponent
    while abs(scaled) >= 2**_BITS:
        exponent, scaled = exponent + 1, scaled / 2
    while abs(scaled) < 2 ** (_BITS - 1):
        exponent, scaled = exponent - 1, scaled * 2
    return round(scaled) * Fraction(2) ** exponent


def _shortest(value: Fraction) -> Value:
    if value.denominator == 1:
        return _exact(int(value))
    for digits in range(1, _DIGITS + 1):
        text = _decimal(value, digits)
        if _in_bits(Fraction(text)) == value:
            return number(text)
    raise Bounded("it makes a number with too many digits")


def _decimal(value: Fraction, digits: int) -> Decimal:
    power = 0
    size = abs(value)
    while size >= 10:
        size, power = size / 10, power + 1
    while size < 1:
        size, power = size * 10, power - 1
    scale = digits - 1 - power
    return Decimal(round(value * Fraction(10) ** scale)).scaleb(-scale)


@function("abs", "number", result="number")
def abs_(value: Number) -> Value:
    return number(magnitude(value))


def _plain(value: Number) -> Number:
    """Return the number. Raises Bounded if OPA rounds it in an unusual way, as between -1 and 0."""
    if magnitude(value) >= _MAX_EXACT_INTEGER or -1 < value < 0:
        raise Bounded("it rounds a number that OPA rounds in its own way")
    return value


@function("ceil", "number", result="number")
def ceil(value: Number) -> Value:
    return math.ceil(_plain(value))


@function("floor", "number", result="number")
def floor(value: Number) -> Value:
    return math.floor(_plain(value))


@function("round", "number", result="number")
def round_(value: Number) -> Value:
    """Return the nearest integer; halves away from 0."""
    if magnitude(value) >= _MAX_EXACT_INTEGER:
        raise Bounded("it counts with numbers that are too large")
    nearest = math.floor(abs(Fraction(value)) + Fraction(1, 2))
    return nearest if value >= 0 else -nearest


@function("numbers.range", "number", "number", result="array")
def numbers_range(first: Number, last: Number) -> Value:
    """Return all integers between two, in either direction."""
    start, end = integer(first), integer(last)
    if abs(end - start) >= MAX_ITEMS:
        raise Bounded("it makes a collection that is too large")
    return tuple(range(start, end + 1)) if start <= end else tuple(range(start, end - 1, -1))


def _integers(*values: Number) -> tuple[int, ...]:
    if not all(isinstance(value, int) for value in values):
        raise Failed
    if any(magnitude(value) >= _MAX_EXACT_INTEGER for value in values):
        raise Bounded("it counts with numbers that are too large")
    return tuple(map(int, values))


@function("bits.and", "number", "number", result="number")
def bits_and(left: Number, right: Number) -> Value:
    first, second = _integers(left, right)
    return first & second


@function("bits.or", "number", "number", result="number")
def bits_or(left: Number, right: Number) -> Value:
    first, second = _integers(left, right)
    return first | second


@function("bits.xor", "number", "number", result="number")
def bits_xor(left: Number, right: Number) -> Value:
    first, second = _integers(left, right)
    return first ^ second


@function("bits.negate", "number", result="number")
def bits_negate(value: Number) -> Value:
    return ~_integers(value)[0]


@function("count", "string|array|object|set", result="number")
def count(value: str | tuple[Value, ...] | Object | Set) -> Value:
    return len(value)


def _numbers(values: tuple[Value, ...] | Set) -> list[Number]:
    numbers = [value for value in values if isinstance(value, int | Decimal) and not isinstance(value, bool)]
    if len(numbers) != len(values):
        raise Failed
    return numbers


@function("sum", "array|set", result="number")
def sum_(values: tuple[Value, ...] | Set) -> Value:
    return reduce(plus, _numbers(values), 0)


@function("product", "array|set", result="number")
def product(values: tuple[Value, ...] | Set) -> Value:
    return reduce(mul, _numbers(values), 1)


@function("max", "array|set")
def max_(values: tuple[Value, ...] | Set) -> Value:
    if not len(values):
        raise Failed
    return in_order(values)[-1]


@function("min", "array|set")
def min_(values: tuple[Value, ...] | Set) -> Value:
    if not len(values):
        raise Failed
    if len(values) > 1 and None in tuple(values):
        raise Bounded("it takes the minimum of values that include null")
    return in_order(values)[0]


@function("sort", "array|set", result="array")
def sort(values: tuple[Value, ...] | Set) -> Value:
    return tuple(in_order(values))


@function("equal", "any", "any", result="boolean")
def equal(left: Value, right: Value) -> Value:
    return compare(left, right) == 0


@function("neq", "any", "any", result="boolean")
def neq(left: Value, right: Value) -> Value:
    return compare(left, right) != 0


@function("lt", "any", "any", result="boolean")
def lt(left: Value, right: Value) -> Value:
    return compare(left, right) < 0


@function("lte", "any", "any", result="boolean")
def lte(left: Value, right: Value) -> Value:
    return compare(left, right) <= 0


@function("gt", "any", "any", result="boolean")
def gt(left: Value, right: Value) -> Value:
    return compare(left, right) > 0


@function("gte", "any", "any", result="boolean")
def gte(left: Value, right: Value) -> Value:
    return compare(left, right) >= 0
