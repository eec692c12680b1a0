"""Asking servers over HTTP for schemes, within the bounds of `HttpClient`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from eastgate.dialects.kuadrant.authorino.addresses import url_problem
from eastgate.dialects.kuadrant.authorino.facts import ServerResponse, Unavailable
from eastgate.http import MAX_BYTES, MAX_REDIRECTS, Failure, HttpClient, RequestFailed

if TYPE_CHECKING:
    import ssl

__all__ = ["HttpFetcher"]


class HttpFetcher:
    """Satisfies `Fetcher`. `timeout` bounds a question as a whole, in seconds. No proxy is used."""

    def __init__(self, timeout: float = 3, tls: ssl.SSLContext | None = None) -> None:
        self._client = HttpClient(timeout, tls)

    def fetch(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> ServerResponse:
        """Return the answer, of whatever status. Raises `Unavailable`, which never repeats the URL's query."""
        if problem := url_problem(url):
            raise Unavailable(f"the address {problem}")
        try:
            response = self._client.request(method, url, headers, body)
        except RequestFailed as failed:
            raise Unavailable(f"{_without_secrets(failed.url)} {_explain(failed)}") from None
        return ServerResponse(response.status, response.body, response.content_type)


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
