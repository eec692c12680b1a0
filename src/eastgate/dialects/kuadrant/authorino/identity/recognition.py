"""Evaluates one identity of a scheme on one request."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from functools import lru_cache
from typing import cast
from urllib.parse import urlencode

from eastgate.cluster import Secret
from eastgate.dialects.kuadrant.authorino.calls import ask_cached
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.credentials import credential
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.identity.certificates import by_certificate
from eastgate.dialects.kuadrant.authorino.keyring import API_KEY
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    AnonymousAccess,
    ApiKeys,
    Credentials,
    Identity,
    Introspection,
    Jwt,
    Plain,
    TokenReview,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.secrecy import MASK
from eastgate.dialects.kuadrant.authorino.values import resolve
from eastgate.ir.attributes import UNKNOWN
from eastgate.reading.jwt import Expectations, KeySource, VerifiedToken, verify_from
from eastgate.reading.jwt.outcome import Reason, TokenRefused
from eastgate.reading.jwt.verification import check_claims
from eastgate.reading.strict_json import Json, JsonProblem, read_object

# Callers with an API key in a Secret.


_WHOLE = "/last-applied-configuration"


def by_api_key(keys: ApiKeys, credentials: Credentials, evaluation: Evaluation) -> Finding:
    """Find the Secret of an API key. The time for the search reveals nothing about the existing keys."""
    given = credential(credentials, evaluation.request)
    if not isinstance(given, str):
        return given
    offered = given.encode("utf-8", "surrogatepass")
    try:
        owner = _owner(keys, offered, evaluation)
    except Unavailable as problem:
        return Broken(f"The Secrets with the keys cannot be read: {problem}.")
    if owner is None:
        return Refused("The API key is not one of the accepted ones.")
    evaluation.secrets.add_proven(*(value.decode("utf-8", "replace") for value in owner.data.values()))
    reason = f"The API key is that of Secret {owner.name}."
    return Found(_as_object(owner), _as_object(owner, masked=True), reason)


def _owner(keys: ApiKeys, offered: bytes, evaluation: Evaluation) -> Secret | None:
    services, selector = evaluation.services, keys.secrets
    namespace = None if keys.all_namespaces else evaluation.scheme.namespace
    if services.api_key_owner is not None:
        return services.api_key_owner(namespace, selector, offered)
    owner: Secret | None = None
    for secret in sorted(services.secrets(namespace, selector), key=_order):
        key = secret.data.get(API_KEY, b"")
        if hmac.compare_digest(key, offered) and key and owner is None:
            owner = secret
    return owner


def _order(secret: Secret) -> tuple[str, str]:
    return secret.namespace, secret.name


def _as_object(secret: Secret, *, masked: bool = False) -> dict[str, object]:
    """Return the Secret in the form of an API server, as complete as its manifest."""
    metadata: dict[str, object] = {"name": secret.name}
    if secret.namespace:
        metadata["namespace"] = secret.namespace
    if secret.labels:
        metadata["labels"] = dict(secret.labels)
    if secret.annotations:  # kubectl stores the whole Secret again in one of them
        metadata["annotations"] = {
            name: MASK if masked and name.endswith(_WHOLE) else text for name, text in secret.annotations.items()
        }
    data = {name: MASK if masked else base64.b64encode(value).decode() for name, value in secret.data.items()}
    return {"metadata": metadata, "data": data, "type": secret.type}


# Callers with an opaque token: its issuer is asked about it (RFC 7662).


def by_introspection(introspection: Introspection, credentials: Credentials, evaluation: Evaluation) -> Finding:
    """Ask the issuer about the token. The caller is recognized if the token is active."""
    token = credential(credentials, evaluation.request)
    if not isinstance(token, str):
        return token
    if evaluation.services.fetcher is None:
        return NotKnown("the answer of the issuer about the token")
    headers = _headers(introspection, evaluation)
    if isinstance(headers, Broken):
        return headers
    form = {"token": token, "token_type_hint": introspection.token_type_hint or "access_token"}
    try:
        answer = evaluation.services.fetcher.fetch(
            "POST", introspection.url, headers, urlencode(form).encode(), introspection.timeout
        )
    except Unavailable as problem:
        return Broken(f"The issuer cannot be asked about the token: {problem}.")
    if answer.status != 200:
        return Broken(f"The issuer answers {answer.status} when asked about the token.")
    try:
        claims = read_object(answer.body)
        if claims.get("active") is not True:
            return Refused("The issuer says that the token is not active.")
        expected = Expectations(None, leeway=evaluation.services.leeway, require_expiry=False)
        check_claims(claims, expected, evaluation.request.time)
    except JsonProblem as problem:
        return Broken(f"The answer of the issuer {problem}.")
    except TokenRefused as refusal:
        return Refused(refusal.rejected.message)
    evaluation.secrets.add_proven(token)
    return Found(claims, evaluation.secrets.mask_answer(claims), "The issuer says that the token is active.")


def _headers(introspection: Introspection, evaluation: Evaluation) -> dict[str, str] | Broken:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if not introspection.credentials:
        return headers
    secret = evaluation.services.secret(evaluation.scheme.namespace, introspection.credentials)
    if secret is None:
        return Broken(f"There is no Secret {introspection.credentials} with the credentials for the issuer.")
    name, password = (secret.data.get(key, b"").decode("utf-8", "replace") for key in ("clientID", "clientSecret"))
    pair = base64.b64encode(f"{name}:{password}".encode()).decode()
    evaluation.secrets.add_proven(password, f"{name}:{password}", pair)
    headers["Authorization"] = f"Basic {pair}"
    return headers


# Callers with a signed token. Issuer, audience and times are checked, of which Authorino checks only a part.


def by_token(jwt: Jwt, credentials: Credentials, evaluation: Evaluation) -> Finding:
    """Recognize the bearer of a signed token."""
    if evaluation.request.claims is not None:
        return _by_claims(jwt, evaluation.request.claims, evaluation)
    token = credential(credentials, evaluation.request)
    if not isinstance(token, str):
        return token
    keys, url = _source(jwt, evaluation)
    if keys is None or url is None:
        return NotKnown("the keys of the issuer")
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
    """Recognize a caller by claims without a token, as in questions.

    The token counts as verified; existing claims must be right.
    """
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
    return Found(given, given, "The claims count as those of a valid token.")


# Callers with a Kubernetes token: the API server is asked about it.


def by_review(review: TokenReview, credentials: Credentials, evaluation: Evaluation) -> Finding:
    """Ask the API server for the bearer of the token.

    If the scheme has no audiences, the token must be for the host of the request.
    """
    token = credential(credentials, evaluation.request)
    if not isinstance(token, str):
        return token
    audiences = review.audiences
    if not audiences:
        if evaluation.request.host is UNKNOWN:
            return NotKnown("the host")
        audiences = (evaluation.request.host,)
    if evaluation.services.reviewer is None:
        return NotKnown("the answer of the API server about the token")
    try:
        answer = evaluation.services.reviewer.token(token, audiences)
    except Unavailable as problem:
        return Broken(f"The API server cannot be asked about the token: {problem}.")
    if not answer.granted:
        return Refused("The API server does not know the token.")
    evaluation.secrets.add_proven(token)
    return Found(dict(answer.status), dict(answer.status), "The API server knows the token.")


def recognize(identity: Identity, evaluation: Evaluation) -> Finding:
    """Recognize the caller, with the additional properties of the scheme. The document changes only on success.

    Only answers of servers are cached. Local checks are fast, and their credentials may have been revoked.
    """
    finding = ask_cached(
        evaluation.services.cache if isinstance(identity.method, TokenReview | Introspection) else None,
        identity.cache,
        (evaluation.scheme, identity),
        evaluation.document,
        lambda: _recognize(identity, evaluation),
        lambda answer: _time_left(answer, evaluation),
    )
    return _extended(identity, finding, evaluation) if isinstance(finding, Found) else finding


def _recognize(identity: Identity, evaluation: Evaluation) -> Finding:
    match identity.method:
        case Jwt() as jwt:
            return by_token(jwt, identity.credentials, evaluation)
        case ApiKeys() as keys:
            return by_api_key(keys, identity.credentials, evaluation)
        case X509() as authorities:
            return by_certificate(authorities, evaluation)
        case TokenReview() as review:
            return by_review(review, identity.credentials, evaluation)
        case Introspection() as introspection:
            return by_introspection(introspection, identity.credentials, evaluation)
        case Plain() as plain:
            return _plain(plain, evaluation)
        case AnonymousAccess():
            return Found({"anonymous": True}, {"anonymous": True}, "Every caller is accepted.")


def _plain(plain: Plain, evaluation: Evaluation) -> Finding:
    finding = resolve(plain.value, evaluation.document)
    if isinstance(finding, Found) and finding.value is None:
        return Refused(f"{plain.expression} is null." if plain.expression else f"{plain.selector} selects nothing.")
    return finding


def _time_left(answer: Found, evaluation: Evaluation) -> float | None:
    """Return the seconds until a token expires. An answer about the token is not cached longer."""
    if not isinstance(answer.value, Mapping):
        return None
    expires = answer.value.get("exp")
    if isinstance(expires, bool) or not isinstance(expires, int | float):
        return None
    return expires - evaluation.request.time


def _extended(identity: Identity, recognized_as: Found, evaluation: Evaluation) -> Finding:
    """Return the identity with its properties. All properties are resolved on the identity without any of them."""
    document = evaluation.document
    if not identity.properties:
        document.add_finding("identity", None, recognized_as.value, recognized_as.masked)
        return recognized_as
    if not isinstance(recognized_as.value, Mapping) or not isinstance(recognized_as.masked, Mapping):
        return Refused("The identity is not an object, so no properties can be added to it.")
    before = document.copied()
    before.add_finding("identity", None, recognized_as.value, recognized_as.masked)
    plain, masked = dict(recognized_as.value), dict(recognized_as.masked)
    for each in identity.properties:
        if each.name in plain and not each.overwrite:
            continue
        resolved = resolve(each.value, before)
        match resolved:
            case Found(value, twin):
                plain[each.name], masked[each.name] = value, twin
            case NotKnown(what):
                return NotKnown(f"{what} (for the property {each.name})")
            case Broken(reason):
                return Refused(f"The property {each.name} of the identity cannot be resolved. {reason}")
    document.add_finding("identity", None, plain, masked)
    return Found(plain, masked, recognized_as.reason)
