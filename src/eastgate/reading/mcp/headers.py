"""HTTP headers of the protocol, and those that repeat what the body says."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence

from eastgate.basics.regexes import regex
from eastgate.reading.mcp.messages import Message

SESSION = "mcp-session-id"
PROTOCOL_VERSION = "mcp-protocol-version"
METHOD = "mcp-method"
NAME = "mcp-name"

LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions that begin with a handshake, oldest first."""

MODERN_VERSIONS = ("2026-07-28",)
"""Versions whose requests stand each for itself, oldest first."""

_CONTENT_TYPE = regex(r'[ \t]*+([^\s;,]++)[ \t]*+(?:;[ \t]*+charset=(?:utf-8|"utf-8")[ \t]*+)?')
_PLAIN = regex(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_START, _END = "=?base64?", "?="


def media_type(content_type: str) -> str | None:
    """Return the type of a text in UTF-8, in lower case; None for other charsets and parameters."""
    match = _CONTENT_TYPE.fullmatch(content_type.lower())
    return match.group(1) if match else None


def encode_value(value: str) -> str:
    """Return a value as a header may carry it: itself, or in Base64."""
    if _PLAIN.fullmatch(value) and not _is_encoded(value):
        return value
    return f"{_START}{base64.b64encode(value.encode()).decode()}{_END}"


def decode_value(value: str) -> str | None:
    """Return the value that a header carries; None where that is not certain."""
    if not _is_encoded(value):
        return value
    encoded = value[len(_START) : -len(_END)]
    try:
        content = base64.b64decode(encoded, validate=True)
        text = content.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if base64.b64encode(content).decode() == encoded else None


def agrees(messages: Sequence[Message], headers: Iterable[tuple[str, str]]) -> bool:
    """Whether the headers that repeat a message say what it says. Those that are missing say nothing.

    A server or a proxy behind this one may look at the headers only. Nothing can repeat a batch or a response.
    """
    seen: set[str] = set()
    for key, value in headers:
        header = key.lower()
        if header not in (METHOD, NAME):
            continue
        if header in seen or len(messages) != 1:
            return False
        seen.add(header)
        expected = messages[0].method if header == METHOD else messages[0].name
        if expected is None or decode_value(value) != expected:
            return False
    return True


def _is_encoded(value: str) -> bool:
    return value.startswith(_START) and value.endswith(_END) and len(value) >= len(_START) + len(_END)
