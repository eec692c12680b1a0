"""Limits the depth of JSON. API servers store ten thousand levels if a CRD allows them."""

from __future__ import annotations

from typing import Final

from eastgate.basics.regexes import regex

MAX_LEVELS: Final = 300
_TOKEN: Final = regex(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')


def cut_depth(content: bytes) -> bytes:
    """Return JSON with null in the place of values deeper than `MAX_LEVELS`. No reader goes that deep."""
    kept: list[bytes] = []
    depth = begin = 0
    for token in _TOKEN.finditer(content):
        match token.group():
            case b"{" | b"[":
                depth += 1
                if depth == MAX_LEVELS + 1:
                    kept += (content[begin : token.start()], b"null")
            case b"}" | b"]":
                depth -= 1
                if depth == MAX_LEVELS:
                    begin = token.end()
            case _:
                continue
    return b"".join((*kept, content[begin:]))
