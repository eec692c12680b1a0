"""Verifies a token: the one function that the rest of the package serves."""

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
    """The issuer and the audience of the token, and how its signature and times are judged.

    `leeway` is zero unless a policy says otherwise: the issuer's clock and ours are assumed to agree. A token ends at
    the second it says, whatever the leeway is: nobody gets extra seconds for a stolen one.
    """

    issuer: str | None
    """Exactly the `iss` claim; None leaves it unchecked."""
    audiences: frozenset[str] = frozenset()
    """ANY of these must be in the `aud` claim; empty leaves it unchecked."""
    algorithms: tuple[str, ...] = ASYMMETRIC
    leeway: float = 0
    """Seconds by which `nbf` and `iat` may be ahead."""
    max_bytes: int = 16 * 1024
    """The longest token that is looked at. Proxies cut headers off well before that."""
    require_expiry: bool = True
    """A token without `exp` is good for ever, so having one is asked for unless a policy waives it."""

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


# Compares the claims of a token with what is expected, once its signature was verified.


def check_claims(claims: Mapping[str, Json], expected: Expectations, now: float) -> None:
    """Raise `TokenRefused` for the first claim that does not hold: ALL of times, issuer and audience must."""
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
    # The leeway moves our clock, not theirs, since adding to a large integer may fail.
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
