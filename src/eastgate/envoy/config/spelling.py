"""Builds regular expressions (RE2) for all spellings of hosts and paths in requests.

Envoy keeps `%40` and the letter case of hex digits in a path, and the port and the trailing dot of a host. A literal
with only one spelling needs no expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from eastgate.basics.regexes import regex
from eastgate.ir import OneOf, Prefix, Suffix
from eastgate.ir.paths import DECODED

# Builds expressions that find bytes inside of base64: Envoy has some texts only encoded. Three bytes become four
# characters, so bytes look different at each of three offsets, and share their first and last character with their
# neighbours.


_COMMON = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
STANDARD, URL_SAFE = f"{_COMMON}+/", f"{_COMMON}-_"


def bits(data: bytes) -> str:
    """Return bytes as bits. `?` matches any bit, and eight of them any byte."""
    return "".join(f"{byte:08b}" for byte in data)


def encodings(data: str, alphabet: str) -> Iterator[list[str]]:
    """Yield the possible encodings of whole bytes, as bits, from the beginning of a group of four characters.

    There is one for each of the three offsets: the alternative characters at each position.
    """
    for offset in range(3):
        padded = "?" * 8 * offset + data
        padded += "?" * (-len(padded) % 6)
        sextets = (padded[start : start + 6] for start in range(0, len(padded), 6))
        yield ["".join(alphabet[number] for number in range(64) if _fits(f"{number:06b}", bits)) for bits in sextets]


def _fits(number: str, bits: str) -> bool:
    return all(bit in ("?", digit) for digit, bit in zip(number, bits, strict=True))


_HEX = "0123456789ABCDEF"
_ANY_HEX, _NO_HEX = "[0-9A-Fa-f]", "[^0-9A-Fa-f]"
_UNRESERVED = regex(r"[-A-Za-z0-9._~]")
_PIECES = regex(r"%[0-9A-F]{2}|(?s:.)")
_RAW = {"%5B": r"\[", "%5D": r"\]"}  # Envoy keeps them as they are


def host_pattern(matcher: OneOf | Prefix | Suffix, text: str) -> str:
    """Return an expression for a host in any letter case, with or without a trailing dot and a port."""
    before, behind = ("(?s:.*)" if isinstance(matcher, kind) else "" for kind in (Suffix, Prefix))
    return rf"(?i){before}{re.escape(text)}{behind}\.?(?::[0-9]+)?"


def path_pattern(matcher: OneOf | Prefix | Suffix, text: str) -> str | None:
    """Return an expression for all paths whose canonical form equals, begins or ends with the text; None if a plain
    comparison does the same.

    A text may begin or end inside of a `%XX`, and then it matches only some of these sequences.
    """
    if isinstance(matcher, Prefix):
        return _prefix(text)
    if isinstance(matcher, Suffix):
        return _suffix(text)
    return spell_path(text) if _has_spellings(text) else None


def _has_spellings(text: str) -> bool:
    return any(character == "%" or character in DECODED for character in text)


def spell_path(text: str) -> str:
    """Return an expression for all spellings of a canonical path."""
    return "".join(map(_spell_piece, _PIECES.findall(text)))


def _spell_piece(piece: str) -> str:
    if piece in DECODED:
        return f"(?:{re.escape(piece)}|%{_either_case(f'{ord(piece):02X}')})"
    if len(piece) == 1:
        return re.escape(piece)
    encoded = f"%{_either_case(piece[1:])}"
    return f"(?:{_RAW[piece]}|{encoded})" if piece in _RAW else encoded


def _either_case(digits: str) -> str:
    return "".join(digit if digit.isdigit() else f"[{digit}{digit.lower()}]" for digit in digits)


# Texts that begin or end inside of a `%XX`


def _is_kept(code: str) -> bool:
    """Return whether a byte stays encoded in a canonical path."""
    character = chr(int(code, 16))
    return character not in DECODED and _UNRESERVED.fullmatch(character) is None


def _prefix(text: str) -> str | None:
    if not _has_spellings(text):
        return None
    inside = re.search(r"%([0-9A-Fa-f]?)$", text)
    if inside is None:
        return f"(?s){spell_path(text)}.*"
    begun = inside[1]
    kept = [code for first in _HEX for second in _HEX if (code := first + second).startswith(begun) and _is_kept(code)]
    ways = [f"%{_either_case(code)}.*" for code in kept] + [
        f"{raw}.*" for code, raw in _RAW.items() if code[1:] in kept
    ]
    ways.append(f"%{begun}(?:{_NO_HEX}.*)?")
    if not begun:
        ways.append(f"%{_ANY_HEX}(?:{_NO_HEX}.*)?")
    return f"(?s){spell_path(text[: inside.start()])}(?:{'|'.join(ways)})"


def _suffix(text: str) -> str | None:
    if re.match(_ANY_HEX, text):
        return f"(?s)(?:{'|'.join(_suffixes(text))})"
    return f"(?s).*{spell_path(text)}" if _has_spellings(text) else None


def _suffixes(text: str) -> Iterator[str]:
    """Yield suffixes that begin with a hex digit: after text that makes no `%XX` of it, or makes one that is kept."""
    whole = spell_path(text)
    two = re.match(f"{_ANY_HEX}{{2}}", text) is not None
    yield f"(?:.*[^{'%' if two else ''}0-9A-Fa-f])?{whole}"
    yield f"(?:.*[^%])?{_ANY_HEX}{whole}"
    kept = [first for first in _HEX if text[0] in _HEX and _is_kept(first + text[0])]
    rest = spell_path(text[1:])
    yield from (f".*%{_either_case(first + text[0])}{rest}" for first in kept)
    yield from (f".*{raw}{rest}" for code, raw in _RAW.items() if code[2] == text[0])
    if two and text[0] in _HEX and text[1] in _HEX and _is_kept(text[:2]):
        yield f".*{spell_path(f'%{text[:2]}')}{spell_path(text[2:])}"
