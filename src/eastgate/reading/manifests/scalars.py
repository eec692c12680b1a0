"""Resolves unquoted YAML scalars as kubectl does.

Readers differ here (`on`, `010`, `1e3`, `1_000` are different things to YAML 1.1, YAML 1.2 and PyYAML), and a policy
that one reader takes for a string and another for a number is a hole. kubectl reads YAML 1.1 with a few changes of
go-yaml; these are its rules: `y` and `n` are booleans as `yes` and `no` are, so that where a name or a label is wanted
they are errors. Dates and base 60 numbers stay strings, as there.
"""

from __future__ import annotations

import re

from eastgate.basics.regexes import regex
from eastgate.reading.manifests.node import Scalar


class NoNumberError(Exception):
    """The text is a number that JSON, and so Kubernetes, has no form for."""


def _cases(*words: str) -> list[str]:
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


NULLS = frozenset(["", "~", *_cases("null")])
TRUE = frozenset([*_cases("true", "yes", "on"), "y", "Y"])
FALSE = frozenset([*_cases("false", "no", "off"), "n", "N"])
WORDS: dict[str, bool | None] = {
    **dict.fromkeys(NULLS, None),
    **dict.fromkeys(TRUE, True),
    **dict.fromkeys(FALSE, False),
}

_INT = regex(r"[-+]?(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = regex(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_SEPARATED = regex(r"(?:[^_]|(?<=[0-9])_(?=[0-9]))*+", re.ASCII)
_NOT_FINITE = frozenset(
    [sign + form for sign in ("", "+", "-") for form in (".inf", ".Inf", ".INF")] + [".nan", ".NaN", ".NAN"]
)
_BASES = (16, 2, 8, 10)
_DECIMAL = len(_BASES)
MOST_DIGITS = 4300  # Python refuses to convert more, because that takes quadratic time


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar without a tag."""
    if text in WORDS:
        return WORDS[text]
    # "9" is the last of the characters that a number can start with; nearly all strings start above it.
    return _number(text) if text[0] <= "9" else text


def _number(text: str) -> Scalar:
    if text[0] not in "0123456789+-.":
        return text
    plain = text.replace("_", "") if text[0] != "." or _SEPARATED.fullmatch(text) else text
    whole = _to_int(plain)
    if whole is not None:
        return whole
    value = _to_float(plain)
    return text if value is None else value


def _to_int(text: str) -> int | None:
    match = _INT.fullmatch(text)
    if match is None or match.lastindex is None:
        return None
    digits = match.group(match.lastindex)
    if len(digits) > MOST_DIGITS:
        raise NoNumberError
    value = int(digits, _BASES[match.lastindex - 1])
    value = -value if text[0] == "-" else value
    if match.lastindex != _DECIMAL and not -(1 << 63) <= value < 1 << 64:
        raise NoNumberError  # kubectl takes it for a string, or for a decimal number
    return value


def _to_float(text: str) -> float | None:
    if text in _NOT_FINITE:
        raise NoNumberError
    if _FLOAT.fullmatch(text) is None:
        return None
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NoNumberError
    return value


def _tagged_int(text: str) -> int | None:
    return None if text.startswith("_") else _to_int(text.replace("_", ""))


def _tagged_float(text: str) -> float | None:
    plain = text if text.startswith("_") else text.replace("_", "")
    value = _to_float(plain)
    if value is not None:
        return value
    whole = _to_int(plain)
    try:
        return None if whole is None else float(whole)
    except OverflowError:
        raise NoNumberError from None


def _tagged_bool(text: str) -> bool | None:
    return WORDS.get(text)


CONVERT = {"int": _tagged_int, "float": _tagged_float, "bool": _tagged_bool}
"""Readers of scalars by their explicit tag; each returns None where a text does not fit the tag."""
