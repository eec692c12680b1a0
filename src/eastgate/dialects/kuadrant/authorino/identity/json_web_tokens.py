"""Callers with a signed token. Issuer, audience and times are checked, which Authorino does only in part."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.credentials import credential
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.model import Credentials, Jwt
from eastgate.reading.jwt import Expectations, KeySource, VerifiedToken, verify_from
from eastgate.reading.jwt.claims import check_claims
from eastgate.reading.jwt.outcome import Reason, TokenRefused
from eastgate.reading.strict_json import Json


def by_token(jwt: Jwt, credentials: Credentials, evaluation: Evaluation) -> Finding:
    """Recognize the bearer of a token."""
    if evaluation.request.claims is not None:
        return _by_claims(jwt, evaluation.request.claims, evaluation)
    token = credential(credentials, evaluation.request)
    if not isinstance(token, str):
        return token
    keys, url = _source(jwt, evaluation)
    if keys is None or url is None:
        return NotKnown("which keys the issuer has")
    expected = _expectations(jwt.issuer, jwt.audiences, evaluation.services.leeway)
    outcome = verify_from(keys, url, token, expected, evaluation.request.time, evaluation.services.tokens)
    if isinstance(outcome, VerifiedToken):
        evaluation.secrets.add_proven(token)
        claims = dict(outcome.claims)
        return Found(claims, claims, "The token is good.")
    if outcome.reason is Reason.KEYS_UNAVAILABLE:
        return Broken(outcome.message)
    return Refused(outcome.message)


@lru_cache(maxsize=1024)
def _expectations(issuer: str | None, audiences: frozenset[str], leeway: float) -> Expectations:
    return Expectations(issuer, audiences, leeway=leeway)


def _source(jwt: Jwt, evaluation: Evaluation) -> tuple[KeySource | None, str | None]:
    if jwt.jwks_url is not None:
        return evaluation.services.key_sets, jwt.jwks_url
    return evaluation.services.keys, jwt.issuer


def _by_claims(jwt: Jwt, claims: Mapping[str, object], evaluation: Evaluation) -> Finding:
    """Recognize by claims that stand for a token which was verified elsewhere: those that are there must be right."""
    expected = Expectations(
        jwt.issuer if "iss" in claims else None,
        jwt.audiences if "aud" in claims else frozenset(),
        leeway=evaluation.services.leeway,
        require_expiry=False,
    )
    given = cast("dict[str, Json]", dict(claims))
    try:
        check_claims(given, expected, evaluation.request.time)
    except TokenRefused as refusal:
        return Refused(refusal.rejected.message)
    return Found(given, given, "The claims are taken as those of a good token.")
