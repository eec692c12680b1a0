"""Callers with a token that its issuer is asked about (RFC 7662)."""

from __future__ import annotations

import base64
from urllib.parse import urlencode

from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.credentials import credential
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.model import Credentials, Introspection
from eastgate.reading.jwt import Expectations
from eastgate.reading.jwt.claims import check_claims
from eastgate.reading.jwt.outcome import TokenRefused
from eastgate.reading.strict_json import JsonProblem, read_object


def by_introspection(introspection: Introspection, credentials: Credentials, evaluation: Evaluation) -> Finding:
    """Ask the issuer about the token; recognized if it says that the token is active."""
    token = credential(credentials, evaluation.request)
    if not isinstance(token, str):
        return token
    if evaluation.services.fetcher is None:
        return NotKnown("what the issuer would say about the token")
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
