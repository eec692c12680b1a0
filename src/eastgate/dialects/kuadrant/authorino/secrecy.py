"""Keeps secrets out of answers and explanations.

There are two kinds, and they are treated differently on purpose:

- What a request carries at the location of a credential is masked by its *location*: in the twin of the document that
  all answers and explanations are made from. Masking it wherever its text occurs would let a caller blank out a header
  that the service behind relies on, by sending that header's value as a credential.
- What an operator keeps in a Secret, and a credential that was found good, is masked by its *text*, everywhere.

Explanations are for reading only, so there both kinds are masked by text as well.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import quote, quote_plus, unquote_plus

__all__ = ["MASK", "Secrets"]

MASK = "***"

_SHORTEST = 5  # a shorter text is masked only where it is all there is: it occurs in too much else


class Secrets:
    """The texts that must not be shown: `proven` nowhere, `claimed` not in explanations."""

    __slots__ = ("_claimed", "_proven")

    def __init__(self) -> None:
        self._claimed: list[str] = []
        self._proven: list[str] = []

    def add_claimed(self, *texts: str) -> None:
        """Add texts that the caller sent as credentials, valid or not."""
        self._claimed += texts

    def add_proven(self, *texts: str) -> None:
        """Add texts that are secrets for sure: no caller chooses them."""
        self._proven += texts

    def mask_explanation(self, value: object) -> object:
        """Return a value for an explanation, without secrets."""
        return _masked(value, _spelled(*self._claimed, *self._proven))

    def mask_text(self, text: str) -> str:
        """Return a text for an explanation, without secrets."""
        return _masked_text(text, _spelled(*self._claimed, *self._proven)) if text else text

    def mask_answer(self, value: object) -> object:
        """Return a value for an answer, without proven secrets."""
        return _masked(value, _spelled(*self._proven)) if self._proven else value


def _spelled(*texts: str) -> list[str]:
    """Return all spellings of the texts, the longest first."""
    spellings: set[str] = set()
    for text in dict.fromkeys(texts):
        spellings |= _spellings(text)
    return sorted(spellings, key=len, reverse=True)


def _spellings(text: str) -> set[str]:
    """Return the text as it may occur: as it is, in a URL, in Base64."""
    if not text:
        return set()
    encoded = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
    spelled = {text, text.strip(), unquote_plus(text), encoded}
    if not text.isalnum():
        bytes_ = text.encode("utf-8", "surrogatepass")
        spelled |= {quote(bytes_), quote(bytes_, safe=""), quote_plus(bytes_)}
    return spelled - {""}


def _masked(value: object, texts: list[str]) -> object:
    match value:
        case str():
            return _masked_text(value, texts)
        case Mapping():
            return {_masked_text(str(key), texts): _masked(item, texts) for key, item in value.items()}
        case list() | tuple():
            return [_masked(item, texts) for item in value]
    return value


def _masked_text(text: str, texts: list[str]) -> str:
    for secret in texts:
        if text == secret:
            return MASK
        if len(secret) >= _SHORTEST and secret in text:
            text = text.replace(secret, MASK)
    return text
