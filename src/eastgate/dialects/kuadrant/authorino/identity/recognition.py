"""Evaluates one identity of a scheme on one request."""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.dialects.kuadrant.authorino.caching import ask_cached
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.identity.api_keys import by_api_key
from eastgate.dialects.kuadrant.authorino.identity.certificates import by_certificate
from eastgate.dialects.kuadrant.authorino.identity.introspection import by_introspection
from eastgate.dialects.kuadrant.authorino.identity.json_web_tokens import by_token
from eastgate.dialects.kuadrant.authorino.identity.reviews import by_review
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    AnonymousAccess,
    ApiKeys,
    Identity,
    Introspection,
    Jwt,
    Plain,
    TokenReview,
)
from eastgate.dialects.kuadrant.authorino.values import resolve


def recognize(identity: Identity, evaluation: Evaluation) -> Finding:
    """Recognize the caller, with the properties that the scheme adds. The document changes only on success.

    Answers of servers alone are used again: what we know ourselves is quick to find, and may have been revoked.
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
            return Found({"anonymous": True}, {"anonymous": True}, "Everybody is accepted.")


def _plain(plain: Plain, evaluation: Evaluation) -> Finding:
    finding = resolve(plain.value, evaluation.document)
    if isinstance(finding, Found) and finding.value is None:
        return Refused(f"{plain.expression} is null." if plain.expression else f"{plain.selector} selects nothing.")
    return finding


def _time_left(answer: Found, evaluation: Evaluation) -> float | None:
    """Return the seconds until a token ends: an answer about it is not kept longer."""
    if not isinstance(answer.value, Mapping):
        return None
    expires = answer.value.get("exp")
    if isinstance(expires, bool) or not isinstance(expires, int | float):
        return None
    return expires - evaluation.request.time


def _extended(identity: Identity, recognized_as: Found, evaluation: Evaluation) -> Finding:
    """Return the identity with its properties. All of them are resolved on the identity as it was before the first."""
    document = evaluation.document
    if not identity.properties:
        document.learn("identity", None, recognized_as.value, recognized_as.masked)
        return recognized_as
    if not isinstance(recognized_as.value, Mapping) or not isinstance(recognized_as.masked, Mapping):
        return Refused("The identity is not an object, so no properties can be added to it.")
    before = document.copied()
    before.learn("identity", None, recognized_as.value, recognized_as.masked)
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
                return Refused(f"The property {each.name} of the identity cannot be had. {reason}")
    document.learn("identity", None, plain, masked)
    return Found(plain, masked, recognized_as.reason)
