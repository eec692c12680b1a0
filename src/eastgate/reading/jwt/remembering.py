"""Remembers tokens that were verified, so that the signature of each is checked once."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict

from eastgate.basics.records import dataclass
from eastgate.reading.jwt.expectations import Expectations
from eastgate.reading.jwt.keys import Keys
from eastgate.reading.jwt.outcome import VerifiedToken

_Key = tuple[bytes, str, Expectations]


@dataclass(frozen=True, slots=True)
class _Remembered:
    token: VerifiedToken
    keys: Keys
    since: float
    until: float


class VerifiedTokens:
    """Verified tokens, by their hash, their issuer and what was expected of them. The least recently used give way.

    A token is good as long as it says, and only with the very key set that it was verified with: once the issuer
    changes its keys, every token is verified anew. Nothing here holds a token itself.
    """

    def __init__(self, size: int = 10_000) -> None:
        self._size = size
        self._remembered: OrderedDict[_Key, _Remembered] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, token: str, issuer_url: str, keys: Keys, expected: Expectations, now: float) -> VerifiedToken | None:
        """Return the token, if it was verified with these keys, for the same, and is still good."""
        key = _key(token, issuer_url, expected)
        with self._lock:
            remembered = self._remembered.get(key)
            if remembered is None:
                return None
            if remembered.keys is keys and remembered.since <= now < remembered.until:
                self._remembered.move_to_end(key)
                return remembered.token
            del self._remembered[key]
        return None

    def put(
        self, token: str, issuer_url: str, keys: Keys, expected: Expectations, now: float, verified: VerifiedToken
    ) -> None:
        """Remember a token that was verified with these keys now."""
        expires = verified.claims.get("exp")
        until = math.inf if not isinstance(expires, int | float) else expires
        with self._lock:
            self._remembered[_key(token, issuer_url, expected)] = _Remembered(verified, keys, now, until)
            while len(self._remembered) > self._size:
                self._remembered.popitem(last=False)

    def __len__(self) -> int:
        return len(self._remembered)


def _key(token: str, issuer_url: str, expected: Expectations) -> _Key:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest(), issuer_url, expected
