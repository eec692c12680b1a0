"""Addresses of servers that schemes ask."""

from __future__ import annotations

from eastgate.basics.http import split_url


def url_problem(url: str) -> str | None:
    """Return what keeps a text from being an address to ask, in words that follow "the address"."""
    parts = split_url(url)
    if parts is None:
        return "is not a URL"
    if parts.scheme not in ("http", "https"):
        return "is neither http nor https"
    if not parts.hostname or parts.port == 0:
        return "names no server"
    if "@" in parts.netloc:
        return "has a user name in it"
    return None
