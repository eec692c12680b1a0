"""Compares the claims of a token with what is expected, once its signature was verified."""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.reading.jwt.expectations import Expectations
from eastgate.reading.jwt.outcome import Reason, TokenRefused
from eastgate.reading.strict_json import Json


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
