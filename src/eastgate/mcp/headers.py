"""HTTP headers of the protocol, and those that repeat what the body says."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from eastgate.mcp.messages import Kind, Message
from eastgate.regexes import regex

__all__ = [
    "LEGACY_VERSIONS",
    "METHOD",
    "MODERN_VERSIONS",
    "NAME",
    "PROTOCOL_VERSION",
    "SESSION",
    "agrees",
    "decode_value",
    "encode_value",
]

SESSION = "mcp-session-id"
PROTOCOL_VERSION = "mcp-protocol-version"
METHOD = "mcp-method"
NAME = "mcp-name"

LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions that begin with a handshake, oldest first."""

MODERN_VERSIONS = ("2026-07-28",)
"""Versions whose requests stand each for itself, oldest first."""

_PLAIN = regex(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_START, _END = "=?base64?", "?="


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


def agrees(message: Message, headers: Iterable[tuple[str, str]]) -> bool:
    """Whether the headers that repeat a message say what it says. Those that are missing say nothing.

    A server or a proxy behind this one may look at the headers only. A batch, a response, or a message without a
    name agrees with no header that names one.
    """
    seen: set[str] = set()
    for key, value in headers:
        name = key.lower()
        if name not in (METHOD, NAME):
            continue
        expected = message.method if name == METHOD else message.name
        if name in seen or message.kind is Kind.RESPONSE or decode_value(value) != expected:
            return False
        seen.add(name)
    return True


def _is_encoded(value: str) -> bool:
    return value.startswith(_START) and value.endswith(_END) and len(value) >= len(_START) + len(_END)
