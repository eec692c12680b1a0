"""Verifies a token. This is the central function of the package."""

from __future__ import annotations

import math
from collections.abc import Mapping

from eastgate.basics.records import dataclass
from eastgate.reading.jwt.envelope import ASYMMETRIC, KNOWN, Envelope, open_token
from eastgate.reading.jwt.keys import Key, Keys
from eastgate.reading.jwt.outcome import Reason, RejectedToken, TokenRefused, VerifiedToken
from eastgate.reading.strict_json import Json, JsonProblem, read_object

# The requirements of a policy on a token.


@dataclass(frozen=True, slots=True)
class Expectations:
    """The expected issuer and audience of a token, and the rules for its signature and times.

    `leeway` is zero unless a policy sets it: the clocks of the issuer and of Eastgate are assumed to agree. The leeway
    never extends `exp`, so a stolen token gets no extra seconds.
    """

    issuer: str | None
    """Exactly the `iss` claim; None leaves it unchecked."""
    audiences: frozenset[str] = frozenset()
    """The `aud` claim must have ANY of these; an empty set leaves it unchecked."""
    algorithms: tuple[str, ...] = ASYMMETRIC
    leeway: float = 0
    """Seconds by which `nbf` and `iat` may be ahead."""
    max_bytes: int = 16 * 1024
    """The longest token that is read. Proxies have lower limits for headers."""
    require_expiry: bool = True
    """Whether `exp` is required. A token without it never expires."""

    def __post_init__(self) -> None:
        if self.issuer == "":
            raise ValueError("issuer is empty; to leave the issuer unchecked, give None")
        if not isinstance(self.audiences, frozenset):  # a string would count as the set of its letters
            raise ValueError("audiences must be a frozenset of strings")
        if not isinstance(self.algorithms, tuple):
            raise ValueError("algorithms must be a tuple of names")
        if not self.algorithms:
            raise ValueError("algorithms is empty, so no token could ever be accepted")
        if unknown := sorted(set(self.algorithms) - KNOWN):
            raise ValueError(f"{', '.join(unknown)}: not a signature algorithm; known are {', '.join(sorted(KNOWN))}")
        if not (math.isfinite(self.leeway) and self.leeway >= 0):
            raise ValueError("leeway must be zero or more seconds")
        if self.max_bytes <= 0:
            raise ValueError("max_bytes must be more than zero")


# Compares the claims of a token with the expectations, after its signature was verified.


def check_claims(claims: Mapping[str, Json], expected: Expectations, now: float) -> None:
    """Raise `TokenRefused` for the first claim that does not hold. ALL of times, issuer and audience must hold."""
    _check_times(claims, expected, now)
    if expected.issuer is not None:
        _check_issuer(claims, expected.issuer)
    if expected.audiences:
        _check_audience(claims, expected.audiences)


def _check_times(claims: Mapping[str, Json], expected: Expectations, now: float) -> None:
    expires, begins, issued = (_time(claims, name) for name in ("exp", "nbf", "iat"))
    if expires is None and expected.require_expiry:
        raise _missing("exp")
    if expires is not None and now >= expires:  # RFC 7519: not "on or after" exp
        raise TokenRefused(Reason.EXPIRED, "The token has expired.")
    # The leeway is added to the local time, because adding to a large integer of the token may fail.
    if begins is not None and now + expected.leeway < begins:
        raise TokenRefused(Reason.NOT_YET_VALID, "The token is not valid yet.")
    if issued is not None and now + expected.leeway < issued:
        raise TokenRefused(Reason.ISSUED_IN_THE_FUTURE, "The token says that it was issued in the future.")


def _time(claims: Mapping[str, Json], name: str) -> int | float | None:
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _invalid(name, "a number of seconds")
    return value


def _check_issuer(claims: Mapping[str, Json], issuer: str) -> None:
    if "iss" not in claims:
        raise _missing("iss")
    if not isinstance(claims["iss"], str):
        raise _invalid("iss", "a string")
    if claims["iss"] != issuer:
        raise TokenRefused(Reason.WRONG_ISSUER, f"The token is not from the issuer {issuer}.")


def _check_audience(claims: Mapping[str, Json], audiences: frozenset[str]) -> None:
    if "aud" not in claims:
        raise _missing("aud")
    claim = claims["aud"]
    claimed = claim if isinstance(claim, list) else [claim]
    strings = {name for name in claimed if isinstance(name, str)}
    if not all(isinstance(name, str) for name in claimed):
        raise _invalid("aud", "a string or a list of strings")
    if audiences.isdisjoint(strings):
        raise TokenRefused(Reason.WRONG_AUDIENCE, f"The token is not for {' or '.join(sorted(audiences))}.")


def _missing(name: str) -> TokenRefused:
    return TokenRefused(Reason.MISSING_CLAIM, f"The token has no {name} claim.")


def _invalid(name: str, kind: str) -> TokenRefused:
    return TokenRefused(Reason.INVALID_CLAIM, f"The {name} claim of the token is not {kind}.")


def verify(token: str, keys: Keys, expected: Expectations, now: float) -> VerifiedToken | RejectedToken:
    """Verify a token at the time `now` (seconds since 1970). Every text gets an answer; no text raises.

    The order matters for security: no part of the payload is read before its signature is verified.
    """
    if not math.isfinite(now):  # every comparison with NaN is false, so no token would be expired
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
        # The name is repeated only if it is a known word, so that clients cannot write into the logs.
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
