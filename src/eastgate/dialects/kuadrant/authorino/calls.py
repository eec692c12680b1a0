"""Sends the HTTP requests that a scheme describes: for metadata, callbacks and Rego modules."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import SplitResult, urlencode, urlsplit

from eastgate.basics.http import MAX_BYTES, MAX_REDIRECTS, Failure, HttpClient, RequestFailed, origin, split_url
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson
from eastgate.dialects.kuadrant.authorino.client_tokens import client_token
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import ServerResponse, Unavailable
from eastgate.dialects.kuadrant.authorino.model import Cache, HttpCall, LiteralValue, Scheme, Selected, Where
from eastgate.dialects.kuadrant.authorino.outcomes import Broken, Finding, Found, NotKnown
from eastgate.dialects.kuadrant.authorino.values import properties, resolve, stringified

if TYPE_CHECKING:
    pass


# Addresses of the servers of schemes.


def url_problem(url: str) -> str | None:
    """Return why a text is not a valid address, in words that follow "the address"; None if it is valid."""
    parts = split_url(url)
    if parts is None:
        return "is not a URL"
    if parts.scheme not in ("http", "https"):
        return "is neither http nor https"
    if not parts.hostname or parts.port == 0:
        return "names no server"
    if "@" in parts.netloc:
        return "has a user name in it"
    return None


# Sends HTTP requests for schemes, within the limits of `HttpClient`.


MAX_WAIT_SECONDS: Final = 10.0
"""The longest time that a request waits for a server of a scheme."""


class HttpFetcher:
    """Satisfies `Fetcher`. No proxy is used.

    `timeout` limits the whole request, in seconds, if the scheme does not.
    """

    def __init__(self, timeout: float = 3) -> None:
        self._client = HttpClient(timeout)

    def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float | None = None
    ) -> ServerResponse:
        """Return the response with any status. Raises `Unavailable`, whose message never contains the URL's query."""
        if problem := url_problem(url):
            raise Unavailable(f"the address {problem}")
        try:
            response = self._client.request(method, url, headers, body, timeout=_bounded(timeout))
        except RequestFailed as failed:
            raise Unavailable(f"{_without_secrets(failed.url)} {_explain(failed)}") from None
        return ServerResponse(response.status, response.body, response.content_type)


def _bounded(timeout: float | None) -> float | None:
    """Return the time to wait for a request with this `timeout` in the scheme; 0 means no limit of the scheme."""
    return timeout if timeout is None else min(timeout or MAX_WAIT_SECONDS, MAX_WAIT_SECONDS)


def _explain(failed: RequestFailed) -> str:
    match failed.failure:
        case Failure.UNREACHABLE:
            return f"cannot be reached: {type(failed.cause).__name__}"
        case Failure.BROKEN:
            return f"cannot be asked: {type(failed.cause).__name__}"
        case Failure.SLOW:
            return "takes too long"
        case Failure.LONG:
            return f"answers with more than {MAX_BYTES} bytes"
        case Failure.REDIRECTS:
            return f"redirects more than {MAX_REDIRECTS} times"
        case Failure.ELSEWHERE:
            return "redirects elsewhere, which is not followed"


def _without_secrets(url: str) -> str:
    """Return the address without its secret parts."""
    parts = urlsplit(url)
    return SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], parts.path[:200], "", "").geturl()


# Caches good answers for a limited time and up to a limited size.


@dataclass(frozen=True, slots=True)
class _CachedAnswer:
    answer: Found
    until: float


class AnswerCache:
    """Answers by scheme, evaluator and key.

    The least recently used are dropped. A scheme that is read again has an empty cache.
    """

    def __init__(self, size: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._clock = clock
        self._held: OrderedDict[tuple[object, ...], _CachedAnswer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...]) -> Found | None:
        """Return the answer if it is not expired."""
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None
            if self._clock() >= held.until:
                del self._held[key]
                return None
            self._held.move_to_end(key)
            return held.answer

    def put(self, key: tuple[object, ...], answer: Found, seconds: float) -> None:
        """Keep an answer for a number of seconds."""
        if seconds <= 0:
            return
        with self._lock:
            self._held[key] = _CachedAnswer(answer, self._clock() + seconds)
            self._held.move_to_end(key)
            while len(self._held) > self._size:
                self._held.popitem(last=False)

    def __len__(self) -> int:
        return len(self._held)


def ask_cached(
    cache: AnswerCache | None,
    settings: Cache | None,
    owner: tuple[Scheme, object],
    document: AuthorizationJson,
    ask: Callable[[], Finding],
    good_for: Callable[[Found], float | None] = lambda _: None,
) -> Finding:
    """Return the cached answer, or ask for it and cache it. `good_for` may shorten the time of an answer.

    If the key is null or cannot be resolved, nothing is cached. `owner` is the evaluator of the answer, identified by
    its object identity. The scheme keeps the evaluator alive for as long as the cache has the key.
    """
    if cache is None or settings is None:
        return ask()
    selected = resolve(settings.key, document)
    if not isinstance(selected, Found) or selected.value is None:
        return ask()
    scheme, evaluator = owner
    key = (scheme, id(evaluator), json.dumps(selected.value, sort_keys=True, default=str))
    held = cache.get(key)
    if held is not None:
        return Found(held.value, held.masked, "The answer is cached and still valid.")
    answer = ask()
    if isinstance(answer, Found):
        limit = good_for(answer)
        cache.put(key, answer, settings.seconds if limit is None else min(settings.seconds, limit))
    return answer


_FIXED_SERVER = regex(r"https?://[^/?#{]+(?=[/?#]|$)", re.IGNORECASE)
_Request: TypeAlias = tuple[str, dict[str, str], bytes | None]


def send(call: HttpCall, evaluation: Evaluation, server: str) -> ServerResponse | NotKnown | Broken:
    """Return the response of the server, with any status.

    `server` is its name in messages. Without a fetcher, the response is unknown.
    """
    request = _request(call, evaluation, server)
    if not isinstance(request, tuple):
        return request
    fetcher = evaluation.services.fetcher
    if fetcher is None:
        return NotKnown(f"the answer of {server}")
    with_credential = _with_credential(call, evaluation, request, server)
    if not isinstance(with_credential, tuple):
        return with_credential
    url, headers, body = with_credential
    try:
        return fetcher.fetch(call.method, url, headers, body, call.timeout)
    except Unavailable as problem:
        return Broken(f"{server[0].upper()}{server[1:]} cannot be asked: {problem}.")


def _request(call: HttpCall, evaluation: Evaluation, server: str) -> _Request | NotKnown | Broken:
    """Return the address, the headers and the body, or the reason why they are not known."""
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
    """Return the address. A request cannot change the host of an address."""
    written = Selected(call.url) if "{" in call.url else LiteralValue(call.url)
    url = resolve(call.url_expression or written, evaluation.document)
    if not isinstance(url, Found):
        return url
    address = str(url.value)
    fixed = _FIXED_SERVER.match(call.url)
    if url_problem(address) or (fixed and origin(address) != origin(fixed[0])):
        return Broken(f"The address of {server} is invalid after its selectors are filled in.")
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
