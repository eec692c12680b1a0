"""Session ids that only the agent which received them can use, and only for the server that issued them.

The gateway keeps no sessions. It gives `<server's id>.<tag>` to the client, and accepts that only from the same peer
for the same backend: the tag is a truncated HMAC of all three. `sessions.lua` does the same inside Envoy.
"""

from __future__ import annotations

import hmac

from eastgate.basics.regexes import regex

MAX_LENGTH = 2048
"""The longest id of a server, in characters."""

TAG_LENGTH = 32
"""Hexadecimal digits: 128 bits."""

_VISIBLE = regex(r"[\x21-\x7e]++")


def wrap_session(key: bytes, peer: str, backend: str, session: str) -> str | None:
    """Return the id for the client, given a server's id; None for an id that the protocol does not allow."""
    if len(session) > MAX_LENGTH or not _VISIBLE.fullmatch(session):
        return None
    tag = _tag(key, peer, backend, session)
    return None if tag is None else f"{session}.{tag}"


def unwrap_session(key: bytes, peer: str, backend: str, token: str) -> str | None:
    """Return the server's id from the client's; None if it was not given to this peer for this backend."""
    session, dot, tag = token.rpartition(".")
    if not dot or len(session) > MAX_LENGTH or not _VISIBLE.fullmatch(token) or not session:
        return None
    expected = _tag(key, peer, backend, session)
    return session if expected is not None and hmac.compare_digest(expected, tag) else None


def _tag(key: bytes, peer: str, backend: str, session: str) -> str | None:
    if not peer or not backend or "\0" in peer or "\0" in backend:
        return None
    return hmac.new(key, f"{peer}\0{backend}\0{session}".encode(), "sha256").hexdigest()[:TAG_LENGTH]
