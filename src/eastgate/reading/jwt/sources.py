"""Sources of the keys of issuers, and verification with the present keys of an issuer."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from eastgate.basics.records import dataclass
from eastgate.reading.jwt.keys import Keys
from eastgate.reading.jwt.outcome import Reason, RejectedToken, VerifiedToken
from eastgate.reading.jwt.verification import Expectations, verify

# Caches verified tokens, so that each signature is checked once.


_Key = tuple[bytes, str, Expectations]


@dataclass(frozen=True, slots=True)
class _Remembered:
    token: VerifiedToken
    keys: Keys
    since: float
    until: float


class VerifiedTokens:
    """Verified tokens, by their hash, issuer and expectations. The least recently used are dropped.

    An entry is valid until the token expires, and only with the key set that verified it. If the issuer changes its
    keys, every token is verified again. The cache holds no token itself.
    """

    def __init__(self, size: int = 10_000) -> None:
        self._size = size
        self._remembered: OrderedDict[_Key, _Remembered] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, token: str, issuer_url: str, keys: Keys, expected: Expectations, now: float) -> VerifiedToken | None:
        """Return the token, if it was verified with these keys and expectations, and has not expired."""
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
        """Store a token that was verified with these keys now."""
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


class KeysUnavailable(Exception):  # noqa: N818 - a state of the world, which callers answer with a denial
    """Error: the keys of an issuer are not available. No token of it can be verified until they are."""


class KeySource(Protocol):
    """A source of the keys of issuers. The issuer's URL comes from a policy, never from a token.

    As long as an issuer has the same keys, they should be the same object: cached tokens depend on it.
    """

    def keys(self, issuer_url: str) -> Keys:
        """Return the present keys. Raises `KeysUnavailable`."""
        ...

    def newer_keys(self, issuer_url: str, than: Keys) -> Keys:
        """Return newer keys than those without the key that a token names; the same keys if there are none.

        Any client can name keys that do not exist, so a source limits its fetches. Raises `KeysUnavailable`.
        """
        ...


class KnownKeys:
    """Keys from files: for tests, for clusters without internet access, and for reproducible answers."""

    def __init__(self, by_issuer: Mapping[str, Keys]) -> None:
        self._by_issuer = dict(by_issuer)

    @classmethod
    def from_files(cls, by_issuer: Mapping[str, Path]) -> KnownKeys:
        """Read a JWKS file for each issuer URL. Raises ValueError with the name of an invalid file."""
        return cls({issuer: _read(path) for issuer, path in by_issuer.items()})

    def keys(self, issuer_url: str) -> Keys:
        """Return the keys for exactly this URL."""
        try:
            return self._by_issuer[issuer_url]
        except KeyError:
            raise KeysUnavailable(f"no keys are known for the issuer {issuer_url}") from None

    def newer_keys(self, issuer_url: str, than: Keys) -> Keys:  # noqa: ARG002 - nothing is ever newer here
        """Return the same keys."""
        return self.keys(issuer_url)


def verify_from(
    source: KeySource,
    issuer_url: str,
    token: str,
    expected: Expectations,
    now: float,
    remembered: VerifiedTokens | None = None,
) -> VerifiedToken | RejectedToken:
    """Verify with the issuer's keys, and again with newer keys if the token names an unknown key.

    A `remembered` token that was verified with the same keys is valid until it expires.
    """
    if len(token) > expected.max_bytes:
        return verify(token, _NO_KEYS, expected, now)
    try:
        keys = source.keys(issuer_url)
        if remembered is not None and (verified := remembered.get(token, issuer_url, keys, expected, now)) is not None:
            return verified
        outcome = verify(token, keys, expected, now)
        if isinstance(outcome, RejectedToken) and outcome.reason is Reason.UNKNOWN_KEY:
            newer = source.newer_keys(issuer_url, keys)
            if newer is not keys:
                keys, outcome = newer, verify(token, newer, expected, now)
        if remembered is not None and isinstance(outcome, VerifiedToken):
            remembered.put(token, issuer_url, keys, expected, now, outcome)
    except KeysUnavailable as problem:
        return RejectedToken(Reason.KEYS_UNAVAILABLE, f"The keys of the issuer are not available: {problem}.")
    return outcome


_NO_KEYS = Keys(())


def _read(path: Path) -> Keys:
    try:
        return Keys.of(path.read_bytes())
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise ValueError(f"{path}: {reason}") from problem
