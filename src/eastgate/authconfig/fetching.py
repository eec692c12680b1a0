"""Asking servers over HTTP, within bounds: of time, of size, and of where the question may end up."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from eastgate.authconfig.facts import Answer, Unavailable

if TYPE_CHECKING:
    import ssl
    from urllib.request import OpenerDirector

__all__ = ["HttpFetcher", "origin", "url_problem"]

MAX_BYTES = 512 * 1024
MAX_REDIRECTS = 3

_PORTS = {"http": 80, "https": 443}
_MOVED = frozenset((301, 302, 303, 307, 308))


class HttpFetcher:
    """Satisfies `Fetcher`. `timeout` bounds a question as a whole, in seconds.

    A GET follows redirects on the same server. Nothing else follows any: it may carry a credential.
    """

    def __init__(self, timeout: float = 3, tls: ssl.SSLContext | None = None) -> None:
        self._timeout = timeout
        self._tls = tls
        self._opener: OpenerDirector | None = None

    def fetch(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """One request and its answer, of whatever status. Raises `Unavailable`, which never repeats the URL's query."""
        deadline = time.monotonic() + self._timeout
        asked = origin(url)
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._once(method, url, headers, body, deadline)
            if isinstance(answer, Answer):
                return answer
            moved = urljoin(url, answer)
            if method != "GET" or url_problem(moved) or origin(moved) != asked:
                raise Unavailable(f"{_shown(url)} redirects elsewhere, which is not followed")
            url = moved
        raise Unavailable(f"{_shown(url)} redirects more than {MAX_REDIRECTS} times")

    def _once(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> Answer | str:
        from http.client import HTTPException
        from urllib.error import URLError
        from urllib.request import Request

        if problem := url_problem(url):
            raise Unavailable(f"the address {problem}")
        left = deadline - time.monotonic()
        if left <= 0:
            raise Unavailable(f"{_shown(url)} takes too long")
        # Compression would let a small answer become a large one.
        sent = {"Accept-Encoding": "identity", **headers}
        try:
            request = Request(url, data=body, headers=sent, method=method)  # noqa: S310 - only http and https get here
            with self._connected().open(request, timeout=left) as response:
                if response.status in _MOVED and (location := response.headers.get("Location")):
                    return str(location)
                read = bytearray()
                while chunk := response.read1(64 * 1024):
                    read += chunk
                    if len(read) > MAX_BYTES:
                        raise Unavailable(f"{_shown(url)} answers with more than {MAX_BYTES} bytes")
                    if time.monotonic() > deadline:
                        raise Unavailable(f"{_shown(url)} takes too long")
                return Answer(response.status, bytes(read), response.headers.get("Content-Type", ""))
        except URLError as error:
            raise Unavailable(f"{_shown(url)} cannot be reached: {type(error.reason).__name__}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise Unavailable(f"{_shown(url)} cannot be asked: {type(error).__name__}") from None

    def _connected(self) -> OpenerDirector:
        """Made by hand: urllib's own opener reads files, follows redirects anywhere, and raises for statuses."""
        if self._opener is None:
            import ssl
            from urllib import request as urllib_request

            opener = urllib_request.OpenerDirector()
            opener.add_handler(urllib_request.HTTPHandler())
            opener.add_handler(urllib_request.HTTPSHandler(context=self._tls or ssl.create_default_context()))
            self._opener = opener
        return self._opener


def url_problem(url: str) -> str | None:
    """What keeps a text from being an address to ask, in words that follow "the address"."""
    if not url.isascii() or not url.isprintable() or set(url) & set(' \\"<>^`{|}'):
        return "is not a URL"  # urllib would remove or reinterpret such characters without a word
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in _PORTS:
        return "is neither http nor https"
    if not parts.hostname or port == 0:
        return "names no server"
    if "@" in parts.netloc:
        return "has a user name in it"
    return None


def origin(url: str) -> tuple[str, str | None, int] | None:
    """The server that a URL names; None where it names none."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return None


def _shown(url: str) -> str:
    """The address without what may be secret in it."""
    parts = urlsplit(url)
    return SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], parts.path[:200], "", "").geturl()
