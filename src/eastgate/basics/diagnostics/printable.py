"""Text that a terminal, or a reader of CI logs, only shows and does not obey.

What somebody else wrote (a path that a caller sent, a name in a manifest, a file's name) may hold escape sequences
that move the cursor or set the window's title, line breaks that forge a line of ours, or marks that turn the order of
letters around. `printable` is for such a value, wherever words are made of it. `composed` is the last look at words
that are about to be written, in which line breaks and colors are our own.
"""

from __future__ import annotations

import json

from eastgate.basics.regexes import regex

_SGR = r"\x1b\[[0-9;]*m"
_PIECES = regex(rf"({_SGR}|[\n\t])")
# `::error::` at the start of a line is a command to GitHub's runner, `##[error]` and `##vso[` anywhere to Azure's.
_COMMAND = regex(rf"(?m)^((?:{_SGR}|[ \t])*):(?=:)|#(?=#[a-z]*\[)")


def printable(value: str) -> str:
    """Return a value on one line, with escapes such as `\\x1b` and `\\u202e` for all that is not a visible character.

    That is C0 with line breaks and tabs, DEL, C1, bidirectional and other format characters, the separators of lines
    and paragraphs, and lone surrogates, which stand for bytes of a file's name that are no UTF-8.
    """
    if value.isprintable():
        return value
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in value)


def composed(text: str, *, color: bool = False, commands: bool = False) -> str:
    """Return lines of ours as they may be written: line breaks and tabs stay, and our colors with `color` only.

    A line that would be a command to a CI system is not one any more, unless `commands` are what is to be written.
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
    """Return data as JSON in which readable text stays readable, and nothing else than `\\n` is a control character."""
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
