"""Gets tokens with the credentials of a client (RFC 6749, section 4.4), and caches each until it expires."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias
from urllib.parse import quote_plus, urlencode

from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import ServerResponse, Unavailable
from eastgate.dialects.kuadrant.authorino.model import ClientCredentials
from eastgate.dialects.kuadrant.authorino.outcomes import Broken, Found, NotKnown
from eastgate.reading.strict_json import Json, JsonProblem, read_object

_EXPIRY_MARGIN_SECONDS: Final = 10  # seconds before its expiry at which a token is no longer sent
_DEFAULT_LIFETIME_SECONDS: Final = 300  # seconds for which a token without an expiry is cached
_Post: TypeAlias = Callable[[Mapping[str, str], bytes], ServerResponse]


def client_token(client: ClientCredentials, evaluation: Evaluation, server: str) -> str | NotKnown | Broken:
    """Return a token for requests to a server. `server` is its name in messages."""
    secret = evaluation.services.secret(evaluation.scheme.namespace, client.secret.name)
    password = secret.data.get(client.secret.key) if secret is not None else None
    if not password:
        return Broken(f"There is no {client.secret.key} in a Secret {client.secret.name} to ask for a token with.")
    parameters = dict(client.parameters)
    if client.scopes:
        parameters["scope"] = " ".join(client.scopes)
    return request_token(
        client.token_url,
        client.client,
        password,
        evaluation,
        server,
        parameters=parameters,
        cached=client.cached,
        timeout=client.timeout,
    )


def request_token(
    url: str,
    client: str,
    password: bytes,
    evaluation: Evaluation,
    server: str,
    *,
    parameters: Mapping[str, str],
    cached: bool = True,
    timeout: float | None = None,
) -> str | NotKnown | Broken:
    """Return a token of this client: a cached one, or a new one from the server at `url`."""
    fetcher, cache = evaluation.services.fetcher, evaluation.services.cache
    if fetcher is None:
        return NotKnown(f"the answer of {server}")
    key = ("client token", url, client, hashlib.sha256(password).digest(), tuple(sorted(parameters.items())))
    held = cache.get(key) if cache is not None and cached else None
    if held is not None:
        return str(held.value)
    text = password.decode("utf-8", "replace")
    evaluation.secrets.add_proven(text)
    try:
        form = {"grant_type": "client_credentials", **parameters}
        claims = _ask(lambda headers, body: fetcher.fetch("POST", url, headers, body, timeout), client, text, form)
    except Unavailable as problem:
        return Broken(f"No token can be asked for: {problem}.")
    token = claims.get("access_token")
    if not isinstance(token, str) or not token:
        return Broken("The answer of the token endpoint has no token.")
    evaluation.secrets.add_proven(token)
    if cache is not None and cached:
        cache.put(key, Found(token, None), _lifetime(claims.get("expires_in")))
    return token


def _ask(post: _Post, client: str, password: str, form: Mapping[str, str]) -> Mapping[str, Json]:
    """Ask with the credentials in a header. If the server refuses that, ask with the credentials in the body."""
    plain = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    pair = base64.b64encode(f"{quote_plus(client)}:{quote_plus(password)}".encode()).decode()
    answer = post({**plain, "Authorization": f"Basic {pair}"}, urlencode(form).encode())
    if answer.status in (400, 401):
        answer = post(plain, urlencode({**form, "client_id": client, "client_secret": password}).encode())
    if not 200 <= answer.status < 300:
        raise Unavailable(f"the token endpoint answers {answer.status}")
    try:
        return read_object(answer.body)
    except JsonProblem as problem:
        raise Unavailable(f"the answer of the token endpoint {problem}") from None


def _lifetime(seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        return _DEFAULT_LIFETIME_SECONDS
    return seconds - _EXPIRY_MARGIN_SECONDS
