"""A fetcher that asks real servers, for tests of what schemes ask them."""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.dialects.kuadrant.authorino.facts import ServerResponse, Unavailable
from eastgate.http import HttpClient, RequestFailed

__all__ = ["HttpFetcher"]


class HttpFetcher:
    """Satisfies `Fetcher`."""

    def __init__(self, timeout: float = 3) -> None:
        self._client = HttpClient(timeout)

    def fetch(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> ServerResponse:
        try:
            response = self._client.request(method, url, headers, body)
        except RequestFailed as failed:
            raise Unavailable(f"the server cannot be asked: {failed.failure.name}") from None
        return ServerResponse(response.status, response.body, response.content_type)
