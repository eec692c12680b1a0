"""JSON that is nested too deeply to be read: API servers store ten thousand levels, where a definition lets them."""

from __future__ import annotations

from typing import Final

from eastgate.basics.regexes import regex

MOST_LEVELS: Final = 300
_TOKEN: Final = regex(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')


def cut_depth(content: bytes) -> bytes:
    """Return JSON with null in the place of what is nested more than `MOST_LEVELS` deep: still deeper than is read."""
    kept: list[bytes] = []
    depth = begin = 0
    for token in _TOKEN.finditer(content):
        match token.group():
            case b"{" | b"[":
                depth += 1
                if depth == MOST_LEVELS + 1:
                    kept += (content[begin : token.start()], b"null")
            case b"}" | b"]":
                depth -= 1
                if depth == MOST_LEVELS:
                    begin = token.end()
            case _:
                continue
    return b"".join((*kept, content[begin:]))
