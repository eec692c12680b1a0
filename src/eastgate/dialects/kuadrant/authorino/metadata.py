"""Fetches more about a request over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import urlencode

from eastgate.dialects.kuadrant.authorino.addresses import url_problem
from eastgate.dialects.kuadrant.authorino.caching import ask_cached
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import ServerResponse, Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.model import HttpCall, LiteralValue, Metadata, Selected, Where
from eastgate.dialects.kuadrant.authorino.values import properties, resolve, stringified
from eastgate.http import origin
from eastgate.languages.jwt.strict_json import JsonProblem, read_object
from eastgate.regexes import regex

__all__ = ["fetch_metadata"]

_FIXED_SERVER = regex(r"https?://[^/?#{]+(?=[/?#]|$)", re.IGNORECASE)


def fetch_metadata(metadata: Metadata, evaluation: Evaluation) -> Finding:
    """Ask the server. Without a fetcher, its answer is unknown."""
    return ask_cached(
        evaluation.services.cache,
        metadata.cache,
        (evaluation.scheme, metadata),
        evaluation.document,
        lambda: _fetch(metadata.source, evaluation),
    )


def _fetch(call: HttpCall, evaluation: Evaluation) -> Finding:
    request = _request(call, evaluation)
    if not isinstance(request, tuple):
        return request
    fetcher = evaluation.services.fetcher
    if fetcher is None:
        return NotKnown("what the server for metadata would say")
    url, headers, body = request
    try:
        answer = fetcher.fetch(call.method, url, headers, body)
    except Unavailable as problem:
        return Broken(f"The server for metadata cannot be asked: {problem}.")
    return _read(answer, evaluation)


def _read(answer: ServerResponse, evaluation: Evaluation) -> Finding:
    if not 200 <= answer.status < 300:
        return Broken(f"The server for metadata answers {answer.status}.")
    if "application/json" not in answer.content_type:
        text = answer.body.decode("utf-8", "replace")
        return Found(text, evaluation.secrets.mask_answer(text), "The server answered.")
    try:
        value = read_object(answer.body)
    except JsonProblem as problem:
        return Broken(f"The answer of the server for metadata {problem}.")
    return Found(value, evaluation.secrets.mask_answer(value), "The server answered.")


def _request(
    call: HttpCall, evaluation: Evaluation
) -> tuple[str, dict[str, str], bytes | None] | Refused | NotKnown | Broken:
    """Return the address, the headers and the body, or what keeps them from being known."""
    url = resolve(Selected(call.url) if "{" in call.url else LiteralValue(call.url), evaluation.document)
    if not isinstance(url, Found):
        return url
    address = str(url.value)
    fixed = _FIXED_SERVER.match(call.url)
    if url_problem(address) or (fixed and origin(address) != origin(fixed[0])):
        return Broken("The address of the server for metadata is not one once it is filled in.")
    headers = properties(call.headers, evaluation.document)
    if not isinstance(headers, Found):
        return headers
    body = _body(call, evaluation)
    if isinstance(body, NotKnown | Broken):
        return body
    header_values = headers.value if isinstance(headers.value, Mapping) else {}
    sent = {name: stringified(value) for name, value in header_values.items()}
    sent["Content-Type"] = "text/plain" if call.method == "GET" else call.content_type
    return _with_secret(call, evaluation, address, sent, body)


def _body(call: HttpCall, evaluation: Evaluation) -> bytes | NotKnown | Broken | None:
    if call.method == "GET":
        return None
    if call.method != "POST":
        return Broken(f"Servers for metadata are asked with GET or POST, not {call.method}.")
    document = evaluation.document
    body = resolve(call.body, document) if call.body else properties(call.body_parameters, document)
    if not isinstance(body, Found):
        return body
    if call.body:
        return stringified(body.value).encode("utf-8", "replace")
    parameters = body.value if isinstance(body.value, Mapping) else {}
    if call.content_type == "application/json":
        return json.dumps(dict(parameters)).encode()
    return urlencode({name: stringified(value) for name, value in parameters.items()}, errors="replace").encode()


def _with_secret(
    call: HttpCall, evaluation: Evaluation, url: str, headers: dict[str, str], body: bytes | None
) -> tuple[str, dict[str, str], bytes | None] | Broken:
    """Return the request with the shared secret, where there is one, at its location."""
    reference = call.shared_secret
    if reference is None:
        return url, headers, body
    secret = evaluation.services.secret(evaluation.scheme.namespace, reference.name)
    value = secret.data.get(reference.key) if secret is not None else None
    if not value:
        return Broken(f"There is no {reference.key} in a Secret {reference.name} to ask the server with.")
    text = value.decode("utf-8", "replace")
    evaluation.secrets.add_proven(text)
    key = call.credentials.key
    match call.credentials.where:
        case Where.AUTHORIZATION_HEADER:
            headers = {"Authorization": f"{key} {text}", **headers}
        case Where.CUSTOM_HEADER:
            headers = {key: text, **headers}
        case Where.COOKIE:
            headers = {"Cookie": f"{key}={text}", **headers}
        case Where.QUERY:
            url += ("&" if "?" in url else "?") + urlencode({key: text})
    return url, headers, body
