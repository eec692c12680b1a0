"""Sends the HTTP requests that a scheme describes: for metadata, for callbacks, for Rego modules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import urlencode

from eastgate.basics.http import origin
from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.addresses import url_problem
from eastgate.dialects.kuadrant.authorino.client_tokens import client_token
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import ServerResponse, Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Found, NotKnown
from eastgate.dialects.kuadrant.authorino.model import HttpCall, LiteralValue, Selected, Where
from eastgate.dialects.kuadrant.authorino.values import properties, resolve, stringified

_FIXED_SERVER = regex(r"https?://[^/?#{]+(?=[/?#]|$)", re.IGNORECASE)
_Request: TypeAlias = tuple[str, dict[str, str], bytes | None]


def send(call: HttpCall, evaluation: Evaluation, server: str) -> ServerResponse | NotKnown | Broken:
    """Return the response of the server, of whatever status. `server` is what it is called. Without a fetcher, its
    response is unknown.
    """
    request = _request(call, evaluation, server)
    if not isinstance(request, tuple):
        return request
    fetcher = evaluation.services.fetcher
    if fetcher is None:
        return NotKnown(f"what {server} would say")
    with_credential = _with_credential(call, evaluation, request, server)
    if not isinstance(with_credential, tuple):
        return with_credential
    url, headers, body = with_credential
    try:
        return fetcher.fetch(call.method, url, headers, body, call.timeout)
    except Unavailable as problem:
        return Broken(f"{server[0].upper()}{server[1:]} cannot be asked: {problem}.")


def _request(call: HttpCall, evaluation: Evaluation, server: str) -> _Request | NotKnown | Broken:
    """Return the address, the headers and the body, or what keeps them from being known."""
    address = _address(call, evaluation, server)
    if not isinstance(address, str):
        return address
    headers = properties(call.headers, evaluation.document)
    if not isinstance(headers, Found):
        return headers
    body = _body(call, evaluation, server)
    if isinstance(body, NotKnown | Broken):
        return body
    header_values = headers.value if isinstance(headers.value, Mapping) else {}
    sent = {name: stringified(value) for name, value in header_values.items()}
    sent["Content-Type"] = "text/plain" if call.method == "GET" else call.content_type
    if call.shared_secret is not None and call.client is None and not _shared_secret(call, evaluation):
        reference = call.shared_secret
        return Broken(f"There is no {reference.key} in a Secret {reference.name} to ask the server with.")
    return address, sent, body


def _address(call: HttpCall, evaluation: Evaluation, server: str) -> str | NotKnown | Broken:
    """Return the address. A request cannot choose the server of one that is written out."""
    written = Selected(call.url) if "{" in call.url else LiteralValue(call.url)
    url = resolve(call.url_expression or written, evaluation.document)
    if not isinstance(url, Found):
        return url
    address = str(url.value)
    fixed = _FIXED_SERVER.match(call.url)
    if url_problem(address) or (fixed and origin(address) != origin(fixed[0])):
        return Broken(f"The address of {server} is not one once it is filled in.")
    return address


def _body(call: HttpCall, evaluation: Evaluation, server: str) -> bytes | NotKnown | Broken | None:
    if call.method == "GET":
        return None
    if call.method != "POST":
        return Broken(f"{server[0].upper()}{server[1:]} is asked with GET or POST only, as by Authorino.")
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


# Credentials


def _shared_secret(call: HttpCall, evaluation: Evaluation) -> bytes | None:
    reference = call.shared_secret
    if reference is None:
        return None
    secret = evaluation.services.secret(evaluation.scheme.namespace, reference.name)
    return secret.data.get(reference.key) if secret is not None else None


def _with_credential(
    call: HttpCall, evaluation: Evaluation, request: _Request, server: str
) -> _Request | NotKnown | Broken:
    """Return the request with a token, or with the shared secret, at its location."""
    if call.client is not None:
        text = client_token(call.client, evaluation, server)
        if not isinstance(text, str):
            return text
    elif shared := _shared_secret(call, evaluation):
        text = shared.decode("utf-8", "replace")
    else:
        return request
    evaluation.secrets.add_proven(text)
    url, headers, body = request
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
