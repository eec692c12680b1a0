"""The result of verifying a token: the claims that it proves, or the reason why it proves none."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.reading.strict_json import Json


class Reason(StrEnum):
    """The reason why a token was rejected, as a word for logs, metrics and tests."""

    MALFORMED = "malformed"
    """Not a signed JWT in the compact form, or one that readers may read differently."""
    TOO_LARGE = "too-large"
    UNSUPPORTED = "unsupported"
    """A JWT of a kind that is not accepted: encrypted, nested, unencoded, or with critical extensions."""
    ALGORITHM_NOT_ALLOWED = "algorithm-not-allowed"
    UNKNOWN_KEY = "unknown-key"
    """The issuer has no key that could have signed it. It may have published a new one."""
    KEY_MISMATCH = "key-mismatch"
    """The key that it names is not for the algorithm that it names."""
    BAD_SIGNATURE = "bad-signature"
    INVALID_CLAIM = "invalid-claim"
    """A claim that must be checked has a wrong type."""
    MISSING_CLAIM = "missing-claim"
    WRONG_ISSUER = "wrong-issuer"
    WRONG_AUDIENCE = "wrong-audience"
    EXPIRED = "expired"
    NOT_YET_VALID = "not-yet-valid"
    ISSUED_IN_THE_FUTURE = "issued-in-the-future"
    KEYS_UNAVAILABLE = "keys-unavailable"
    """The issuer's keys are not available, so nothing could be checked."""


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """A token that one of the keys signed, and that meets the expectations.

    The claims identify the caller; the text of the token does not. An ECDSA signature has a second valid form, so a
    list of revoked tokens must list `jti` claims.
    """

    claims: Mapping[str, Json]
    header: Mapping[str, Json]
    kid: str | None
    """The id of the key that signed it, if that key has one."""


@dataclass(frozen=True, slots=True)
class RejectedToken:
    """A token that proves nothing. The message may be logged and shown: it repeats no text of the token."""

    reason: Reason
    message: str


class TokenRefused(Exception):  # noqa: N818 - not an error of ours: it carries the answer out of the steps of `verify`
    """Error: the verification of a token has failed. It is internal to this package."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.rejected = RejectedToken(reason, message)
