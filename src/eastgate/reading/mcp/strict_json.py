"""JSON that every reader understands alike, or none at all.

A gateway decides on what it reads, and a server acts on what it reads itself. Whatever two readers may take
differently is refused: duplicate keys, halves of characters, numbers that JSON does not have, bytes behind the value.
"""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.reading.mcp.problems import BadMessage, MessageProblem
from eastgate.reading.strict_json import Json, JsonFlaw, JsonProblem, JsonReader

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64

_READER = JsonReader()
_PROBLEMS = {
    JsonFlaw.CHARACTER: MessageProblem.SURROGATE,
    JsonFlaw.DEPTH: MessageProblem.TOO_DEEP,
    JsonFlaw.DUPLICATE: MessageProblem.DUPLICATE_KEY,
}


def decode_text(body: bytes, max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a body: UTF-8 without a byte order mark, within a size."""
    if len(body) > max_bytes:
        raise BadMessage(MessageProblem.TOO_LARGE)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise BadMessage(MessageProblem.ENCODING) from None
    if text.startswith("\ufeff"):
        raise BadMessage(MessageProblem.ENCODING)
    return text


def read_json(text: str, max_depth: int = MAX_DEPTH) -> Json:
    """Read the one value in a text."""
    try:
        return _READER.read(text, max_depth)
    except JsonProblem as problem:
        raise BadMessage(_PROBLEMS.get(problem.flaw, MessageProblem.SYNTAX)) from None


def refuse_lookalikes(keys: Iterable[str], known: frozenset[str]) -> None:
    """Refuse keys that some readers take for a known one: those that ignore case, or stop at a NUL."""
    for key in keys:
        if key not in known and key.partition("\0")[0].casefold() in known:
            raise BadMessage(MessageProblem.LOOKALIKE_KEY)
