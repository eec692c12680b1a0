"""The result of verifying a token: the claims it proves, or the one reason why it proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.reading.strict_json import Json


class Reason(StrEnum):
    """Why a token was rejected, as a word for logs, metrics and tests."""

    MALFORMED = "malformed"
    """Not a signed JWT in the compact form, or not one that all readers read alike."""
    TOO_LARGE = "too-large"
    UNSUPPORTED = "unsupported"
    """A JWT of a kind that is not accepted: encrypted, nested, unencoded, or with extensions that it insists on."""
    ALGORITHM_NOT_ALLOWED = "algorithm-not-allowed"
    UNKNOWN_KEY = "unknown-key"
    """No key that could have signed it; the issuer may have published a new one."""
    KEY_MISMATCH = "key-mismatch"
    """The key that it names is not made for the algorithm that it names."""
    BAD_SIGNATURE = "bad-signature"
    INVALID_CLAIM = "invalid-claim"
    """A claim that must be checked is of a type that cannot be."""
    MISSING_CLAIM = "missing-claim"
    WRONG_ISSUER = "wrong-issuer"
    WRONG_AUDIENCE = "wrong-audience"
    EXPIRED = "expired"
    NOT_YET_VALID = "not-yet-valid"
    ISSUED_IN_THE_FUTURE = "issued-in-the-future"
    KEYS_UNAVAILABLE = "keys-unavailable"
    """The issuer's keys could not be had, so nothing could be checked."""


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """A token that was signed by one of the keys and is what was expected.

    The claims identify the caller; the text of the token does not. An ECDSA signature has a twin that is as good, so
    a list of revoked tokens must be one of `jti` claims.
    """

    claims: Mapping[str, Json]
    header: Mapping[str, Json]
    kid: str | None
    """The id of the key that signed it, if that key has one."""


@dataclass(frozen=True, slots=True)
class RejectedToken:
    """A token that proves nothing. The message may be logged and shown: it repeats nothing from the token."""

    reason: Reason
    message: str


class TokenRefused(Exception):  # noqa: N818 - not an error of ours: it carries the answer out of the steps of `verify`
    """Ends the verification of a token, within this package only."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.rejected = RejectedToken(reason, message)
