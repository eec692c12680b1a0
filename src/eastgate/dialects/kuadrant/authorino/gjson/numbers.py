"""Numbers as Go reads and prints them, since selectors compare and print the way Authorino does."""

from __future__ import annotations

import math
from decimal import Decimal

from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.gjson.bounds import TooMuch

_MOST_DIGITS = 400
_MISPLACED = regex(r"_(?![0-9a-fA-F])|(?<![0-9a-fA-FxX])_|[pP].*_")  # an underscore that Go does not take
_SAFE = 9007199254740991
_INT64_MAX, _INT64_MIN = (1 << 63) - 1, -(1 << 63)


def to_float(text: str) -> float:
    """Convert as Go's strconv.ParseFloat: 0 for what is not a number, an infinity for what is too large."""
    if not text.isascii() or text != text.strip() or "\0" in text:
        return 0.0
    try:
        if text.lstrip("+-")[:2].lower() == "0x":
            is_number = "p" in text.lower() and _MISPLACED.search(text) is None
            return float.fromhex(text.replace("_", "")) if is_number else 0.0
        return float(text) if "_" not in text else 0.0
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf
    except ValueError:
        return 0.0


def plain_decimal(number: float) -> str:
    """Return the shortest digits that mean this number, without an exponent: Go's FormatFloat(number, 'f', -1, 64)."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    text = format(Decimal(repr(number)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def json_number(number: float) -> str:
    """Return the number as Go's encoding/json prints it: an exponent only for the very small and the very large."""
    if number != 0 and not 1e-6 <= abs(number) < 1e21:
        return repr(number).replace("e-0", "e-").replace("inf", "Inf").replace("nan", "NaN")
    return plain_decimal(number)


def integer_text(number: int) -> str:
    """Return decimal digits. Python refuses to print thousands of them, and so do we."""
    try:
        return str(number)
    except ValueError:
        raise TooMuch("a number has too many digits") from None


def integer_float(number: int) -> float:
    """Return the nearest float."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def plain_number(raw: str) -> int | float:
    """Return the number that its text means: whole if written so and not beyond all measure."""
    if raw not in ("", "-") and text_is_digits(raw) and len(raw) <= _MOST_DIGITS:
        return int(raw)
    return to_float(raw)


def text_is_digits(raw: str) -> bool:
    """Return whether a JSON number is printed as it was written: an optional minus, then nothing but digits."""
    digits = raw[1:] if raw.startswith("-") else raw
    return digits == "" or (digits.isascii() and digits.isdigit())


def number_to_int(number: float, raw: str) -> int:
    """Convert as Go's Result.Int(): cut towards zero, kept within 64 bits, and 0 for what is no number."""
    if -_SAFE <= number <= _SAFE:
        return int(number)
    if raw not in ("", "-") and text_is_digits(raw) and len(raw) <= _MOST_DIGITS:
        return max(_INT64_MIN, min(_INT64_MAX, int(raw)))
    if math.isnan(number):
        return _INT64_MIN
    return _INT64_MAX if number > 0 else _INT64_MIN
