"""Asking servers over HTTP for schemes, within the bounds of `HttpClient`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from eastgate.basics.http import MAX_BYTES, MAX_REDIRECTS, Failure, HttpClient, RequestFailed
from eastgate.dialects.kuadrant.authorino.addresses import url_problem
from eastgate.dialects.kuadrant.authorino.facts import ServerResponse, Unavailable

if TYPE_CHECKING:
    import ssl

LONGEST_WAIT: Final = 10.0
"""Seconds that a scheme can have a request wait for a server."""


class HttpFetcher:
    """Satisfies `Fetcher`. No proxy is used.

    `timeout` bounds a question as a whole, in seconds, where the scheme does not.
    """

    def __init__(self, timeout: float = 3, tls: ssl.SSLContext | None = None) -> None:
        self._client = HttpClient(timeout, tls)

    def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float | None = None
    ) -> ServerResponse:
        """Return the answer, of whatever status. Raises `Unavailable`, which never repeats the URL's query."""
        if problem := url_problem(url):
            raise Unavailable(f"the address {problem}")
        try:
            response = self._client.request(method, url, headers, body, timeout=_bounded(timeout))
        except RequestFailed as failed:
            raise Unavailable(f"{_without_secrets(failed.url)} {_explain(failed)}") from None
        return ServerResponse(response.status, response.body, response.content_type)


def _bounded(timeout: float | None) -> float | None:
    """Return how long to wait where a scheme asks for `timeout`: 0 has no limit of its own."""
    return timeout if timeout is None else min(timeout or LONGEST_WAIT, LONGEST_WAIT)


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
    """Return the address without what may be secret in it."""
    parts = urlsplit(url)
    return SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], parts.path[:200], "", "").geturl()
