"""Reads the header x-forwarded-client-cert, in which a proxy names the certificate that it verified."""

from __future__ import annotations


def identity_in(value: str) -> str | None:
    """Return the URI in the certificate of the nearest client (the last element), or None if it is unknown.

    The URI is empty if that certificate has none. It is unknown if the header has no `URI=`.
    """
    elements = _split(value, ",")
    pairs = _split(elements[-1], ";") if elements is not None else None
    uris = []
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals:
            return None
        if key.strip().lower() == "uri":
            uris.append(_unquoted(text.strip()))
    return uris[0] if len(uris) == 1 else None


def _split(text: str, separator: str) -> list[str] | None:
    """Split at separators outside of quotes; None if a quote is not closed."""
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
