"""Reads the header x-forwarded-client-cert, by which a proxy says which certificate it verified."""

from __future__ import annotations

__all__ = ["identities_in"]


def identities_in(value: str) -> tuple[str, ...]:
    """Return the URIs in the certificate of the nearest client, which the last element names; none where in doubt."""
    elements = _split(value, ",")
    if elements is None:
        return ()
    pairs = _split(elements[-1], ";")
    if pairs is None:
        return ()
    uris = []
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if equals and key.strip().lower() == "uri":
            uris.append(_unquoted(text.strip()))
    return tuple(uris)


def _split(text: str, separator: str) -> list[str] | None:
    """Split at separators outside of quotes; None where a quote is not closed."""
    parts, start, quoted, position = [], 0, False, 0
    while position < len(text):
        character = text[position]
        if quoted and character == "\\":
            position += 1
        elif character == '"':
            quoted = not quoted
        elif character == separator and not quoted:
            parts.append(text[start:position])
            start = position + 1
        position += 1
    return None if quoted else [*parts, text[start:]]


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"')
    return text
