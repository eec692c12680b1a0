"""Keeps secrets out of answers and explanations.

There are two kinds of secrets, with different treatment:

- A credential in a request is masked by its *location*, in the masked version of the document. All answers and
  explanations come from that version. If every occurrence of its text were masked, a caller could blank out a header
  for the application by sending the value of that header as a credential.
- A value of a Secret, and a verified credential, is masked by its *text*, everywhere.

Explanations are only read by people, so there both kinds are masked by text as well.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote, quote_plus, unquote_plus

MASK = "***"

_MAX_ENCODED_CHARACTERS = 12  # characters for one character in its longest URL encoding
_MIN_MASKED_CHARACTERS = 5  # a shorter text is masked only if it is a whole value: it occurs in too many others


class Secrets:
    """The texts that must not be shown: `proven` nowhere, `claimed` not in explanations.

    `claimed` are the credentials that the caller sent, valid or not. They are searched for in texts that are shown.
    """

    __slots__ = ("_claimed", "_issued", "_proven")

    def __init__(self, claimed: Callable[[], Iterable[str]] = tuple) -> None:
        self._claimed = claimed
        self._proven: list[str] = []
        self._issued: list[str] = []

    def add_proven(self, *texts: str) -> None:
        """Add texts that are certainly secrets, because no caller chooses them."""
        self._proven += texts

    def add_issued(self, token: str) -> None:
        """Add a token that the scheme issued. The answer contains it, and no explanation shows it."""
        self._issued.append(token)

    def mask_explanation(self, value: object) -> object:
        """Return a value for an explanation, without secrets."""
        return _masked(value, _spelled(*self._claimed(), *self._proven, *self._issued))

    def mask_text(self, text: str) -> str:
        """Return a text for an explanation, without secrets."""
        return _masked_text(text, _spelled(*self._claimed(), *self._proven, *self._issued)) if text else text

    def mask_answer(self, value: object) -> object:
        """Return a value for an answer, without proven secrets."""
        # Making all spellings takes longer than most decisions, and a long secret is not in a short answer.
        longest = _longest(value) if self._proven else 0
        proven = [secret for secret in self._proven if _shortest_spelling(secret) <= longest]
        return _masked(value, _spelled(*proven)) if proven else value


def _spelled(*texts: str) -> list[str]:
    """Return all spellings of the texts, the longest first."""
    spellings: set[str] = set()
    for text in dict.fromkeys(texts):
        spellings |= _spellings(text)
    return sorted(spellings, key=len, reverse=True)


def _shortest_spelling(text: str) -> int:
    """Return the length of the shortest possible spelling of a text."""
    length = len(text.strip())
    return length if "%" not in text else length // _MAX_ENCODED_CHARACTERS


def _longest(value: object) -> int:
    """Return the length of the longest text in a value."""
    match value:
        case str():
            return len(value)
        case Mapping():
            return max((max(len(str(key)), _longest(item)) for key, item in value.items()), default=0)
        case list() | tuple():
            return max(map(_longest, value), default=0)
    return 0


def _spellings(text: str) -> set[str]:
    """Return the forms of a text: as it is, in a URL, and in Base64."""
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
        if len(secret) >= _MIN_MASKED_CHARACTERS and secret in text:
            text = text.replace(secret, MASK)
    return text
