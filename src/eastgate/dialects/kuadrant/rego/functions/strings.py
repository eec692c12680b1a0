"""Built-in functions of strings: cutting, joining, searching, numbers, templates and patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from eastgate.basics.regexes import Re2Pattern, compile_re2, regex
from eastgate.dialects.kuadrant.rego.functions.registry import MAX_TEXT, Bounded, Failed, function, integer
from eastgate.dialects.kuadrant.rego.texts import shown, written_number
from eastgate.dialects.kuadrant.rego.values import Object, Set, Value, magnitude, number

Items = tuple[Value, ...]
Number = int | Decimal

_SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_JSON_NUMBER: Final = regex(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_GO_NUMBER: Final = regex(  # the grammar of strconv.ParseFloat, except infinities and NaN, which OPA refuses
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|0[xX][0-9a-fA-F_.]*[pP][+-]?[0-9]+)", re.ASCII
)
_MAX_DIGITS: Final = 40
_ANY_BYTE: Final = regex(r"(?<!\\)(?:\\\\)*\\C")
_BASES: Final = {2: "b", 8: "o", 10: "d", 16: "x"}


@function("lower", "string", result="string")
def lower(text: str) -> Value:
    """Convert to lower case, one character for one."""
    return "".join(
        "i" if character == "\u0130" else small if len(small := character.lower()) == 1 else character
        for character in text
    )


@function("upper", "string", result="string")
def upper(text: str) -> Value:
    """Convert to upper case, one character for one."""
    return "".join(large if len(large := character.upper()) == 1 else character for character in text)


@function("concat", "string", "array|set", result="string")
def concat(between: str, parts: Items | Set) -> Value:
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) != len(parts):
        raise Failed
    return between.join(texts)


@function("contains", "string", "string", result="boolean")
def contains(text: str, part: str) -> Value:
    return part in text


@function("startswith", "string", "string", result="boolean")
def startswith(text: str, part: str) -> Value:
    return text.startswith(part)


@function("endswith", "string", "string", result="boolean")
def endswith(text: str, part: str) -> Value:
    return text.endswith(part)


def _texts(value: str | Items | Set) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    texts = tuple(item for item in value if isinstance(item, str))
    if len(texts) != len(value):
        raise Failed
    return texts


@function("strings.any_prefix_match", "string|array|set", "string|array|set", result="boolean")
def any_prefix_match(texts: str | Items | Set, starts: str | Items | Set) -> Value:
    prefixes = _texts(starts)
    return any(text.startswith(prefixes) for text in _texts(texts))


@function("strings.any_suffix_match", "string|array|set", "string|array|set", result="boolean")
def any_suffix_match(texts: str | Items | Set, ends: str | Items | Set) -> Value:
    suffixes = _texts(ends)
    return any(text.endswith(suffixes) for text in _texts(texts))


@function("strings.count", "string", "string", result="number")
def strings_count(text: str, part: str) -> Value:
    return text.count(part)


@function("strings.reverse", "string", result="string")
def strings_reverse(text: str) -> Value:
    return text[::-1]


@function("indexof", "string", "string", result="number")
def indexof(text: str, part: str) -> Value:
    """Return the index of the part, or -1."""
    if not part:
        raise Failed
    return text.find(part)


@function("indexof_n", "string", "string", result="array")
def indexof_n(text: str, part: str) -> Value:
    """Return the index of each occurrence of the part."""
    if not part:
        raise Failed
    return tuple(at for at in range(len(text)) if text.startswith(part, at))


@function("substring", "string", "number", "number", result="string")
def substring(text: str, start: Number, length: Number) -> Value:
    """Return `length` characters from an offset on; all of them if the length is negative."""
    first, most = integer(start), integer(length)
    if first < 0:
        raise Failed
    return text[first:] if most < 0 else text[first : first + most]


@function("replace", "string", "string", "string", result="string")
def replace(text: str, old: str, new: str) -> Value:
    if (text.count(old) + 1) * len(new) > MAX_TEXT:
        raise Bounded("it makes a text that is too long")
    return text.replace(old, new)


@function("split", "string", "string", result="array")
def split(text: str, between: str) -> Value:
    return tuple(text.split(between)) if between else tuple(text)


@function("trim", "string", "string", result="string")
def trim(text: str, characters: str) -> Value:
    return text.strip(characters) if characters else text


@function("trim_left", "string", "string", result="string")
def trim_left(text: str, characters: str) -> Value:
    return text.lstrip(characters) if characters else text


@function("trim_right", "string", "string", result="string")
def trim_right(text: str, characters: str) -> Value:
    return text.rstrip(characters) if characters else text


@function("trim_prefix", "string", "string", result="string")
def trim_prefix(text: str, start: str) -> Value:
    return text.removeprefix(start)


@function("trim_suffix", "string", "string", result="string")
def trim_suffix(text: str, end: str) -> Value:
    return text.removesuffix(end)


@function("trim_space", "string", result="string")
def trim_space(text: str) -> Value:
    return text.strip(_SPACES)


@function("to_number", "null|boolean|number|string", result="number")
def to_number(value: bool | Number | str | None) -> Value:
    """Return the number in a text; 1 for true, 0 for false and null."""
    if not isinstance(value, str):
        return int(bool(value)) if value is None or isinstance(value, bool) else value
    if _JSON_NUMBER.fullmatch(value):
        digits = Decimal(value)
        if len(value) > _MAX_DIGITS or abs(digits.adjusted()) > _MAX_DIGITS:
            raise Bounded("it counts with numbers that are too large")
        return number(digits)
    if _GO_NUMBER.fullmatch(value) is None:
        raise Failed
    raise Bounded("it reads a number that JSON does not know")


@function("format_int", "number", "number", result="string")
def format_int(value: Number, base: Number) -> Value:
    """Return the digits of an integer, in base 2, 8, 10 or 16."""
    kind = _BASES.get(base) if isinstance(base, int) else None
    if kind is None:
        raise Failed
    return format(int(value), kind)


_VERB: Final = regex(r"%(?:%|(?P<flags>[-+# 0]*)(?P<width>[0-9]*)(?P<dot>\.(?P<digits>[0-9]*))?(?P<verb>.)?)", re.S)


@function("sprintf", "string", "array", result="string")
def sprintf(template: str, values: Items) -> Value:
    """Fill in a template. If a value does not fit its verb, Go would print an error, and there is no answer."""
    left = list(values)

    def filled(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        if match["flags"] or match["width"] or not left:
            raise Bounded("it has a template that is not supported")
        return _filled(match["verb"], match["digits"] if match["dot"] else None, left.pop(0))

    text = _VERB.sub(filled, template)
    if left:
        raise Bounded("it has a template that is not supported")
    return text


def _filled(verb: str | None, digits: str | None, value: Value) -> str:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if digits is not None and (verb != "f" or len(digits) > 2):
        raise Bounded("it has a template that is not supported")
    match verb:
        case "s" | "v" if isinstance(value, str):
            return value
        case "v" if isinstance(value, int | Decimal) and is_number and not _is_plain(value):
            raise Bounded("it has a template that is not supported")
        case "v" if is_number:
            return written_number(value)  # type: ignore[arg-type]  # it is a number
        case "s" | "v" if not is_number:
            return shown(value)
        case "d" if isinstance(value, int) and is_number:
            return str(value)
        case "x" if isinstance(value, int) and is_number:
            return format(value, "x")
        case "f" if isinstance(value, Decimal):
            return f"{float(value):.{int(digits or 0) if digits is not None else 6}f}"
    raise Bounded("it has a template that is not supported")


def _is_plain(value: Number) -> bool:
    """Return whether Go writes the number without an exponent."""
    return value == 0 or Decimal("1e-4") <= magnitude(value) < Decimal("1e21")


@function("trace", "string", result="boolean")
def trace(text: str) -> Value:  # noqa: ARG001 - nobody listens
    return True


@function("strings.replace_n", "object", "string", result="string")
def replace_n(patterns: Object, text: str) -> Value:
    """Replace several parts at once. At each position the first matching part wins, in the order of the parts."""
    pairs = [(old, new) for old, new in patterns.items() if isinstance(old, str) and isinstance(new, str)]
    if len(pairs) != len(patterns):
        raise Failed
    if any(not old for old, _ in pairs):
        raise Bounded("it replaces nothing by something")
    made, at = list[str](), 0
    while at < len(text):
        old, new = next(((old, new) for old, new in pairs if text.startswith(old, at)), (text[at], text[at]))
        made.append(new)
        at += len(old)
    return "".join(made)


# Patterns: RE2, whose time is linear in the length of the text


def _pattern(pattern: str) -> Re2Pattern | None:
    if _ANY_BYTE.search(pattern):
        raise Bounded("it has a pattern for single bytes")  # unknown to Go
    compiled = compile_re2(pattern)
    return None if isinstance(compiled, str) else compiled


def _compiled(pattern: str, text: str) -> Re2Pattern:
    compiled = _pattern(pattern)
    if compiled is None:
        raise Failed
    if "\\B" in pattern and not text.isascii():
        raise Bounded("it has a pattern that looks inside characters")
    return compiled


@function("regex.match", "string", "string", result="boolean")
def regex_match(pattern: str, text: str) -> Value:
    return _compiled(pattern, text).search(text) is not None


function("re_match", "string", "string", result="boolean")(regex_match)


@function("regex.is_valid", "any", result="boolean")
def regex_is_valid(pattern: Value) -> Value:
    return isinstance(pattern, str) and _pattern(pattern) is not None


def _matches(pattern: str, text: str) -> Iterator[Any]:
    """Yield all matches as Go finds them. An empty match right after another match does not count."""
    end = -1
    for match in _compiled(pattern, text).finditer(text):
        if match.start() == match.end() == end:
            continue
        end = match.end()
        yield match


def _first(pattern: str, text: str, most: Number) -> list[Any]:
    limit = integer(most)
    matches = list(_matches(pattern, text))
    return matches if limit < 0 else matches[:limit]


@function("regex.find_n", "string", "string", "number", result="array")
def regex_find_n(pattern: str, text: str, most: Number) -> Value:
    return tuple(match[0] for match in _first(pattern, text, most))


@function("regex.find_all_string_submatch_n", "string", "string", "number", result="array")
def regex_find_all(pattern: str, text: str, most: Number) -> Value:
    """Return the first matches, each with its groups."""
    return tuple(tuple(group or "" for group in (match[0], *match.groups())) for match in _first(pattern, text, most))


@function("regex.split", "string", "string", result="array")
def regex_split(pattern: str, text: str) -> Value:
    """Return the texts between matches."""
    if not text:
        _compiled(pattern, text)
        return ("",) if pattern else ()
    parts, start, end = list[Value](), 0, 0
    for match in _matches(pattern, text):
        end = match.start()
        if match.end() != 0:
            parts.append(text[start:end])
        start = match.end()
    if end != len(text):
        parts.append(text[start:])
    return tuple(parts)


@function("glob.match", "string", "null|array", "string", result="boolean")
def glob_match(pattern: str, delimiters: Items | None, text: str) -> Value:
    """Return whether a glob matches: `*` and `?` stop at delimiters, `**` does not. The default delimiter is a dot."""
    signs = () if delimiters is None else delimiters or (".",)
    if not all(isinstance(sign, str) and len(sign) == 1 for sign in signs):
        raise Failed
    if "?" in pattern and (not text or not text.isascii()):
        raise Bounded("it has a glob that is not supported")
    compiled = _pattern(_from_glob(pattern, "".join(map(str, signs))))
    if compiled is None:
        raise Bounded("it has a glob that is not supported")
    return compiled.search(text) is not None


@lru_cache(maxsize=256)
def _from_glob(pattern: str, signs: str) -> str:
    other = f"[^{''.join(re.escape(sign) for sign in signs)}]" if signs else "."
    made, at = [r"(?s)\A"], 0
    if re.search(r"[\[\]{}\\!]|\*\*\*|\*\?|\?[*?]", pattern) or not (pattern + signs).isascii():  # special in OPA
        raise Bounded("it has a glob that is not supported")
    while at < len(pattern):
        if pattern.startswith("**", at):
            made.append(".*")
            at += 2
            continue
        made.append({"*": f"{other}*", "?": other}.get(pattern[at]) or re.escape(pattern[at]))
        at += 1
    return "".join(made) + r"\z"
