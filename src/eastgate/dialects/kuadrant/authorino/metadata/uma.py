"""Fetches the resources that a server of User-Managed Access has registered for the path of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

from eastgate.dialects.kuadrant.authorino.addresses import url_problem
from eastgate.dialects.kuadrant.authorino.client_tokens import request_token
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.discovery import discovered
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown
from eastgate.dialects.kuadrant.authorino.model import UmaResources
from eastgate.ir.attributes import UNKNOWN
from eastgate.reading.strict_json import Json, JsonProblem, read_json

_SERVER: Final = "the server of resources"
_MOST: Final = 32  # resources that are fetched for one request


def by_uma(uma: UmaResources, evaluation: Evaluation) -> Finding:
    """Return the list of the resources with this path. One that cannot be fetched is left out."""
    if evaluation.request.path is UNKNOWN:
        return NotKnown("the path")
    if evaluation.services.fetcher is None:
        return NotKnown(f"what {_SERVER} would say")
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
    """Return where tokens are issued, and where resources are registered."""
    url = uma.url.removesuffix("/") + "/.well-known/uma2-configuration"
    configuration = discovered(url, evaluation, uma.timeout)
    if isinstance(configuration, Broken):
        return configuration
    if configuration.get("issuer") != uma.url:
        return Broken(f"The configuration of {_SERVER} is that of another issuer.")
    endpoints = [configuration.get(name) for name in ("token_endpoint", "resource_registration_endpoint")]
    match endpoints:
        case [str(token_url), str(resources_url)] if not url_problem(token_url) and not url_problem(resources_url):
            return token_url, resources_url
    return Broken(f"The configuration of {_SERVER} lacks an endpoint.")


def _resources(url: str, path: str, token: str, evaluation: Evaluation, timeout: float | None) -> list[object]:
    names = _get(f"{url}?{urlencode({'uri': path})}", token, evaluation, timeout)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Unavailable("its answer is not a list of resources")
    if len(names) > _MOST:
        raise Unavailable(f"it has more than {_MOST} resources for the path")
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
