"""Fetches claims about the bearer of a token from its issuer (OpenID Connect Core 1.0, section 5.3)."""

from __future__ import annotations

from typing import Final

from eastgate.dialects.kuadrant.authorino.addresses import url_problem
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.credentials import credential
from eastgate.dialects.kuadrant.authorino.discovery import discovered
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.metadata.http import read_answer
from eastgate.dialects.kuadrant.authorino.model import X509, AnonymousAccess, Identity, Jwt, Plain, UserInfo

_WELL_KNOWN: Final = "/.well-known/openid-configuration"
_WITHOUT_TOKEN: Final = (AnonymousAccess, Plain, X509)


def by_user_info(info: UserInfo, evaluation: Evaluation) -> Finding:
    """Ask with the token of the caller, if the identity that recognized him is one of that issuer."""
    recognized = evaluation.recognized.identity
    if recognized is None or isinstance(recognized.method, _WITHOUT_TOKEN):
        return Broken("The caller is not recognized by a token that could be asked about.")
    issuer = _issuer(info, evaluation)
    if isinstance(issuer, Broken):
        return issuer
    if issuer is not None and (not isinstance(recognized.method, Jwt) or recognized.method.issuer != issuer):
        return Broken(f"The caller is not recognized by a token of {issuer}.")
    if evaluation.services.fetcher is None:
        return NotKnown("what the issuer would say about the caller")
    url = info.url if issuer is None else _endpoint(issuer, evaluation, info.timeout)
    return _ask(url, recognized, evaluation, info.timeout)


def _ask(url: str | Broken, recognized: Identity, evaluation: Evaluation, timeout: float | None) -> Finding:
    token = credential(recognized.credentials, evaluation.request)
    if isinstance(url, Broken):
        return url
    if isinstance(token, Refused | NotKnown):
        return Broken("There is no token to ask the issuer about.")
    fetcher = evaluation.services.fetcher
    assert fetcher is not None  # noqa: S101 - the caller has looked
    evaluation.secrets.add_proven(token)
    try:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        answer = fetcher.fetch("GET", url, headers, None, timeout)
    except Unavailable as problem:
        return Broken(f"The issuer cannot be asked about the caller: {problem}.")
    return read_answer(answer, evaluation)


def _issuer(info: UserInfo, evaluation: Evaluation) -> str | Broken | None:
    if not info.identity:
        return None
    for identity in evaluation.scheme.identities:
        if identity.name == info.identity and isinstance(identity.method, Jwt) and identity.method.issuer:
            return identity.method.issuer
    return Broken(f"There is no identity {info.identity} with the URL of an issuer.")


def _endpoint(issuer: str, evaluation: Evaluation, timeout: float | None) -> str | Broken:
    configuration = discovered(issuer.rstrip("/") + _WELL_KNOWN, evaluation, timeout)
    if isinstance(configuration, Broken):
        return configuration
    endpoint = configuration.get("userinfo_endpoint")
    if not isinstance(endpoint, str) or url_problem(endpoint):
        return Broken(f"The issuer {issuer} has no endpoint for claims about callers.")
    return endpoint
