"""JSON as text: finds the end of values, reads strings, prints data.

Reading is as lenient as in the original gjson. Some modifiers produce text that is not quite JSON, and Authorino's
reading of it decides about access. All regular expressions here are fixed and match in linear time.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Final

from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.gjson.bounds import MAX_DEPTH, MAX_TEXT, Budget, Pieces, TooMuch
from eastgate.reading.strict_json import JsonFlaw, JsonProblem, JsonReader

# Numbers as Go reads and prints them, because selectors compare and print as Authorino does.


_MAX_DIGITS = 400
_MISPLACED = regex(r"_(?![0-9a-fA-F])|(?<![0-9a-fA-FxX])_|[pP].*_")  # an underscore, which Go rejects
_MAX_SAFE_INTEGER = 9007199254740991
_INT64_MAX, _INT64_MIN = (1 << 63) - 1, -(1 << 63)


def to_float(text: str) -> float:
    """Convert as Go's strconv.ParseFloat: 0 for a text that is no number, infinity for a too large number."""
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
    """Return the shortest digits for this number, without an exponent: Go's FormatFloat(number, 'f', -1, 64)."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    text = format(Decimal(repr(number)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def json_number(number: float) -> str:
    """Return the number as Go prints it in JSON: with an exponent only if it is very small or very large."""
    if number != 0 and not 1e-6 <= abs(number) < 1e21:
        return repr(number).replace("e-0", "e-").replace("inf", "Inf").replace("nan", "NaN")
    return plain_decimal(number)


def integer_text(number: int) -> str:
    """Return decimal digits. Python refuses to print thousands of digits, and so does this function."""
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
    """Return the number that its text means: an integer if the text is one and is not extremely large."""
    if raw not in ("", "-") and text_is_digits(raw) and len(raw) <= _MAX_DIGITS:
        return int(raw)
    return to_float(raw)


def text_is_digits(raw: str) -> bool:
    """Return whether a JSON number is printed as written: an optional minus, then nothing but digits."""
    digits = raw[1:] if raw.startswith("-") else raw
    return digits == "" or (digits.isascii() and digits.isdigit())


def number_to_int(number: float, raw: str) -> int:
    """Convert as Go's Result.Int(): cut towards zero, limited to 64 bits, and 0 for a text that is no number."""
    if -_MAX_SAFE_INTEGER <= number <= _MAX_SAFE_INTEGER:
        return int(number)
    if raw not in ("", "-") and text_is_digits(raw) and len(raw) <= _MAX_DIGITS:
        return max(_INT64_MIN, min(_INT64_MAX, int(raw)))
    if math.isnan(number):
        return _INT64_MIN
    return _INT64_MAX if number > 0 else _INT64_MIN


_REST_OF_STRING: Final = regex(r'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_STRING_OR_BRACKET: Final = regex(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\](){}]', re.DOTALL)
_STRING_OR_SPACE: Final = regex(r'("[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))|[\x00- ]++', re.DOTALL)
_NUMBER_END: Final = regex(r"[\x00- ,\]}]")
_WORD: Final = regex(r"[a-z]*")

_SIMPLE_ESCAPES: Final = {"\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"'}
_GO_ESCAPES: Final = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
_python_quote = json.JSONEncoder(ensure_ascii=False).encode


def end_of_string(text: str, start: int) -> int | None:
    """Return the end of the string that opens at `start`; None if it never ends."""
    match = _REST_OF_STRING.match(text, start + 1)
    return match.end() if match else None


def end_of_number(text: str, start: int) -> int:
    """Return the end of the number at `start`: a space, a comma or a closing bracket."""
    match = _NUMBER_END.search(text, start + 1)
    return match.start() if match else len(text)


def end_of_word(text: str, start: int) -> int:
    """Return the end of `true`, `false` or `null`."""
    match = _WORD.match(text, start + 1)
    return match.end() if match else len(text)


def end_of_block(text: str, start: int) -> int:
    """Return the end of the bracket that opens at `start`, or the end of the text if it never closes.

    Any opening character counts as a bracket, and any bracket closes any other, as in the original gjson.
    """
    depth = 1
    for token in _STRING_OR_BRACKET.finditer(text, start + 1):
        kind = text[token.start()]
        if kind in "[({":
            depth += 1
        elif kind in "])}":
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)


def end_of_argument(text: str, start: int) -> int:
    """Return the end of a string or a bracketed value, or the end of the text if it never closes."""
    if text[start] == '"':
        return end_of_string(text, start) or len(text)
    return end_of_block(text, start)


def without_spaces(text: str) -> str:
    """Return the text without the spaces between its tokens."""
    return _STRING_OR_SPACE.sub(lambda token: token[1] or "", text)


def unescaped(text: str) -> str:
    """Return the content of a string without its escapes.

    A broken escape or a control character ends it, as in gjson.
    """
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character < " ":
            break
        if character != "\\":
            out.append(character)
            at += 1
            continue
        escape = text[at + 1 : at + 2]
        if escape in _SIMPLE_ESCAPES:
            out.append(_SIMPLE_ESCAPES[escape])
            at += 2
        elif escape == "u" and at + 6 <= len(text):
            out.append(_unit(text[at + 2 : at + 6]))
            at += 6
            if "\ud800" <= out[-1] <= "\udfff" and text.startswith("\\u", at) and at + 6 <= len(text):
                out.append(_unit(text[at + 2 : at + 6]))
                at += 6
                out[-2:] = [_joined_surrogates(out[-2], out[-1])]
        else:
            break
    return well_formed("".join(out))


def _unit(digits: str) -> str:
    try:
        return chr(int(digits, 16)) if digits.isalnum() and digits.isascii() else "\0"
    except ValueError:
        return "\0"


def _joined_surrogates(high: str, low: str) -> str:
    if high <= "\udbff" and "\udc00" <= low <= "\udfff":
        return chr(0x10000 + ((ord(high) - 0xD800) << 10) + ord(low) - 0xDC00)
    return "\ufffd"


def well_formed(text: str) -> str:
    """Return the text with each half of a surrogate pair replaced, so that the text can be encoded."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


def quoted(text: str) -> str:
    """Return the text as a JSON string, as Go writes it: `<`, `>` and `&` are escaped too."""
    encoded = _python_quote(well_formed(text))
    return encoded.translate(_GO_ESCAPES)


def write_json(data: object, budget: Budget) -> str:
    """Return the data as compact JSON, as Go's encoding/json writes it for Authorino's selectors."""
    out = Pieces(budget)
    _write(data, out, MAX_DEPTH)
    return out.joined()


def _write(data: object, out: Pieces, depth: int) -> None:
    """Write data, and subtract each piece from the budget at once.

    Shared parts can make the output of small data endless.
    """
    if depth == 0:
        raise TooMuch(f"the data is nested deeper than {MAX_DEPTH} levels")
    if isinstance(data, dict):
        separator = "{"
        for key, value in data.items():
            out.add(separator, _scalar(str(key)), ":")
            _write(value, out, depth - 1)
            separator = ","
        out.add("}" if data else "{}")
    elif isinstance(data, list | tuple):
        separator = "["
        for value in data:
            out.add(separator)
            _write(value, out, depth - 1)
            separator = ","
        out.add("]" if data else "[]")
    else:
        out.add(_scalar(data))


def _scalar(data: object) -> str:
    match data:
        case None:
            return "null"
        case bool():
            return "true" if data else "false"
        case int():
            return integer_text(data)
        case float():
            return json_number(data)
        case _:
            text = str(data)
            if len(text) > MAX_TEXT:
                raise TooMuch(f"a string is longer than {MAX_TEXT} characters")
            return quoted(text)


_READER = JsonReader(lenient=True)
_CHECKER = JsonReader(lenient=True, parse_int=len, parse_float=len)


def read_json(text: str) -> object:
    """Return the data of strictly valid JSON. Raises ValueError for any other text."""
    return _read(_READER, text)


def is_json(text: str) -> bool:
    """Return whether the text is strictly valid JSON."""
    try:
        _read(_CHECKER, text)
    except JsonProblem:
        return False
    return True


def _read(reader: JsonReader, text: str) -> object:
    try:
        return reader.read(text)
    except JsonProblem as problem:
        if problem.flaw is JsonFlaw.DEPTH:
            raise TooMuch("the data is nested too deep") from None
        raise
