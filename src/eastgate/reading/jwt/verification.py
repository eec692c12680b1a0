"""Verifies a token: the one function that the rest of the package serves."""

from __future__ import annotations

import math

from eastgate.reading.jwt.algorithms import KNOWN
from eastgate.reading.jwt.claims import check_claims
from eastgate.reading.jwt.envelope import Envelope, open_token
from eastgate.reading.jwt.expectations import Expectations
from eastgate.reading.jwt.keys import Key, Keys
from eastgate.reading.jwt.outcome import Reason, RejectedToken, TokenRefused, VerifiedToken
from eastgate.reading.strict_json import Json, JsonProblem, read_object


def verify(token: str, keys: Keys, expected: Expectations, now: float) -> VerifiedToken | RejectedToken:
    """Verify a token at the time `now` (seconds since 1970). There is an answer for every text; none raises.

    The order is part of the safety: nothing of the payload is read before the signature over it is verified.
    """
    if not math.isfinite(now):  # every comparison with NaN is false, so nothing would be expired
        raise ValueError("now must be a time in seconds")
    try:
        envelope = open_token(token, expected.max_bytes)
        key = _signer(envelope, keys, expected.algorithms)
        claims = _claims(envelope.payload)
        check_claims(claims, expected, now)
    except TokenRefused as refusal:
        return refusal.rejected
    return VerifiedToken(claims, envelope.header, key.kid)


def _signer(envelope: Envelope, keys: Keys, allowed: tuple[str, ...]) -> Key:
    algorithm = envelope.algorithm
    if algorithm not in allowed:
        # Repeated only where it is one of a few known words, so that nobody writes into our logs.
        name = f" {algorithm}" if algorithm in KNOWN else ""
        raise TokenRefused(
            Reason.ALGORITHM_NOT_ALLOWED, f"The token's algorithm{name} is not one of {', '.join(allowed)}."
        )
    if envelope.kid is not None and not keys.with_id(envelope.kid):
        raise TokenRefused(Reason.UNKNOWN_KEY, "The token names a key that the issuer does not have.")
    candidates = keys.candidates(algorithm, envelope.kid)
    if not candidates and envelope.kid is not None:
        raise TokenRefused(Reason.KEY_MISMATCH, f"The key that the token names is not one for {algorithm}.")
    if not candidates:
        raise TokenRefused(Reason.UNKNOWN_KEY, f"The issuer has no key for {algorithm}.")
    for key in candidates:  # ANY of them
        if key.signed(algorithm, envelope.signed, envelope.signature):
            return key
    raise TokenRefused(Reason.BAD_SIGNATURE, "The token was not signed by a key of the issuer, or was changed since.")


def _claims(payload: bytes) -> dict[str, Json]:
    try:
        return read_object(payload)
    except JsonProblem as problem:
        raise TokenRefused(Reason.MALFORMED, f"The payload of the token {problem}.") from None
