"""Text that is safe for terminals and CI logs: they show it, and execute no part of it.

A value from outside (a path of a request, a name in a manifest, a file's name) is untrusted. It may have escape
sequences that move the cursor or set the window's title. It may have line breaks that forge a line of Eastgate, or
marks that reverse the order of letters. Use `printable` for such a value in every text. `composed` checks complete
lines just before they are written; their line breaks and colors are Eastgate's own.
"""

from __future__ import annotations

import json

from eastgate.basics.regexes import regex

_SGR = r"\x1b\[[0-9;]*m"
_PIECES = regex(rf"({_SGR}|[\n\t])")
# `::error::` at the start of a line is a command to GitHub's runner, `##[error]` and `##vso[` anywhere to Azure's.
_COMMAND = regex(rf"(?m)^((?:{_SGR}|[ \t])*):(?=:)|#(?=#[a-z]*\[)")


def printable(value: str) -> str:
    """Return a value on one line, with escapes such as `\x1b` and `\u202e` for all invisible characters.

    These are C0 with line breaks and tabs, DEL, C1, bidirectional and other format characters, separators of lines and
    paragraphs, and lone surrogates. A surrogate is a byte of a file name that is not UTF-8.
    """
    if value.isprintable():
        return value
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in value)


def composed(text: str, *, color: bool = False, commands: bool = False) -> str:
    """Return complete lines in printable form: line breaks and tabs stay; Eastgate's colors stay with `color` only.

    A line that a CI system would take for a command is changed, unless `commands` are allowed.
    """
    if not commands and (":" in text or "#" in text):
        text = _COMMAND.sub(lambda match: (match[1] or "") + ("\\x3a" if match[0].endswith(":") else "\\x23"), text)
    if text.replace("\n", "").isprintable():
        return text
    pieces = _PIECES.split(text)
    pieces[::2] = map(printable, pieces[::2])
    pieces[1::2] = [mark if color or mark in "\n\t" else "" for mark in pieces[1::2]]
    return "".join(pieces)


def json_text(data: object, *, indent: int | None = None) -> str:
    """Return data as JSON. Readable text stays readable, and a line break is the only control character."""
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
