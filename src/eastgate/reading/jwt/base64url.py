"""Decodes the one spelling of bytes in tokens and keys (RFC 7515, section 2): base64url, no padding or spare bits."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode


def decoded(text: str) -> bytes | None:
    """Return the bytes, or None where the text is not exactly how they are written."""
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    # Python skips what it does not know and ignores spare bits. Only the canonical text comes back the same.
    return data if urlsafe_b64encode(data).rstrip(b"=") == text.encode("ascii") else None
