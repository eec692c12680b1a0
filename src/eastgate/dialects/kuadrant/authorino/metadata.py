"""Sources of metadata: HTTP requests, UserInfo of OpenID Connect, resources of User-Managed Access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

from eastgate.dialects.kuadrant.authorino.calls import ask_cached, send, url_problem
from eastgate.dialects.kuadrant.authorino.client_tokens import request_token
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.credentials import credential
from eastgate.dialects.kuadrant.authorino.facts import ServerResponse, Unavailable
from eastgate.dialects.kuadrant.authorino.keyring import discovered
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    AnonymousAccess,
    HttpCall,
    Identity,
    Jwt,
    Metadata,
    MetadataSource,
    Plain,
    UmaResources,
    UserInfo,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Broken, Finding, Found, NotKnown, Refused
from eastgate.ir.attributes import UNKNOWN
from eastgate.reading.strict_json import Json, JsonProblem, read_json, read_object

# Fetches metadata with one HTTP request.


SERVER = "the server for metadata"


def by_http(call: HttpCall, evaluation: Evaluation) -> Finding:
    """Return the response of the server: an object, or a text if it is not JSON."""
    answer = send(call, evaluation, SERVER)
    if not isinstance(answer, ServerResponse):
        return answer
    if 200 <= answer.status < 300 and "application/json" not in answer.content_type:
        text = answer.body.decode("utf-8", "replace")
        return Found(text, evaluation.secrets.mask_answer(text), "The server answered.")
    return read_answer(answer, evaluation)


def read_answer(answer: ServerResponse, evaluation: Evaluation) -> Finding:
    """Return the object in a server's response."""
    if not 200 <= answer.status < 300:
        return Broken(f"The server for metadata answers {answer.status}.")
    try:
        value = read_object(answer.body)
    except JsonProblem as problem:
        return Broken(f"The answer of the server for metadata {problem}.")
    return Found(value, evaluation.secrets.mask_answer(value), "The server answered.")


# Fetches the resources that a server of User-Managed Access has for the path of a request.


_SERVER: Final = "the server of resources"
_MAX_RESOURCES: Final = 32  # resources that are fetched for one request


def by_uma(uma: UmaResources, evaluation: Evaluation) -> Finding:
    """Return the list of the resources with this path. A resource that cannot be fetched is left out."""
    if evaluation.request.path is UNKNOWN:
        return NotKnown("the path")
    if evaluation.services.fetcher is None:
        return NotKnown(f"the answer of {_SERVER}")
    secret = evaluation.services.secret(evaluation.scheme.namespace, uma.credentials)
    if secret is None:
        return Broken(f"There is no Secret {uma.credentials} with the credentials for {_SERVER}.")
    endpoints = _endpoints(uma, evaluation)
    if isinstance(endpoints, Broken):
        return endpoints
    token_url, resources_url = endpoints
    client = secret.data.get("clientID", b"").decode("utf-8", "replace")
    password = secret.data.get("clientSecret", b"")
    token = request_token(token_url, client, password, evaluation, _SERVER, parameters={}, timeout=uma.timeout)
    if not isinstance(token, str):
        return token
    try:
        resources = _resources(resources_url, evaluation.request.path, token, evaluation, uma.timeout)
    except Unavailable as problem:
        return Broken(f"{_SERVER[0].upper()}{_SERVER[1:]} cannot be asked: {problem}.")
    return Found(resources, evaluation.secrets.mask_answer(resources), "The server answered.")


def _endpoints(uma: UmaResources, evaluation: Evaluation) -> tuple[str, str] | Broken:
    """Return the endpoint for tokens and the endpoint for resources."""
    url = uma.url.removesuffix("/") + "/.well-known/uma2-configuration"
    configuration = discovered(url, evaluation, uma.timeout)
    if isinstance(configuration, Broken):
        return configuration
    if configuration.get("issuer") != uma.url:
        return Broken(f"The configuration of {_SERVER} belongs to another issuer.")
    endpoints = [configuration.get(name) for name in ("token_endpoint", "resource_registration_endpoint")]
    match endpoints:
        case [str(token_url), str(resources_url)] if not url_problem(token_url) and not url_problem(resources_url):
            return token_url, resources_url
    return Broken(f"The configuration of {_SERVER} lacks an endpoint.")


def _resources(url: str, path: str, token: str, evaluation: Evaluation, timeout: float | None) -> list[object]:
    names = _get(f"{url}?{urlencode({'uri': path})}", token, evaluation, timeout)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Unavailable("its answer is not a list of resources")
    if len(names) > _MAX_RESOURCES:
        raise Unavailable(f"it has more than {_MAX_RESOURCES} resources for the path")
    resources: list[object] = []
    for name in names:
        try:
            resources.append(_get(f"{url}/{quote(str(name), safe='')}", token, evaluation, timeout))
        except Unavailable:
            continue
    return resources


def _get(url: str, token: str, evaluation: Evaluation, timeout: float | None) -> Json:
    fetcher = evaluation.services.fetcher
    assert fetcher is not None  # noqa: S101 - the caller has looked
    headers: Mapping[str, str] = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answer = fetcher.fetch("GET", url, headers, None, timeout)
    if not 200 <= answer.status < 300:
        raise Unavailable(f"it answers {answer.status}")
    try:
        return read_json(answer.body)
    except JsonProblem as problem:
        raise Unavailable(f"its answer {problem}") from None


# Fetches claims about the bearer of a token from its issuer (OpenID Connect Core 1.0, section 5.3).


_WELL_KNOWN: Final = "/.well-known/openid-configuration"
_WITHOUT_TOKEN: Final = (AnonymousAccess, Plain, X509)


def by_user_info(info: UserInfo, evaluation: Evaluation) -> Finding:
    """Ask with the token of the caller, if the recognizing identity is of that issuer."""
    recognized = evaluation.recognized.identity
    if recognized is None or isinstance(recognized.method, _WITHOUT_TOKEN):
        return Broken("The caller is not recognized by a token whose issuer can be asked.")
    issuer = _issuer(info, evaluation)
    if isinstance(issuer, Broken):
        return issuer
    if issuer is not None and (not isinstance(recognized.method, Jwt) or recognized.method.issuer != issuer):
        return Broken(f"The caller is not recognized by a token of {issuer}.")
    if evaluation.services.fetcher is None:
        return NotKnown("the answer of the issuer about the caller")
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


# Fetches the metadata of one source.


def fetch_metadata(metadata: Metadata, evaluation: Evaluation) -> Finding:
    """Ask the server. Without a fetcher, its answer is unknown."""
    return ask_cached(
        evaluation.services.cache,
        metadata.cache,
        (evaluation.scheme, metadata),
        evaluation.document,
        lambda: _fetch(metadata.source, evaluation),
    )


def _fetch(source: MetadataSource, evaluation: Evaluation) -> Finding:
    match source:
        case HttpCall():
            return by_http(source, evaluation)
        case UserInfo():
            return by_user_info(source, evaluation)
        case UmaResources():
            return by_uma(source, evaluation)


__all__ = ["fetch_metadata"]
