"""An HTTP client within bounds: of time, of size, and of where a request may end up. On top of urllib3."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field
from enum import Enum, auto
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from eastgate.basics.records import dataclass

if TYPE_CHECKING:
    import ssl

    from urllib3 import PoolManager
    from urllib3.response import BaseHTTPResponse

MAX_BYTES = 512 * 1024
"""The longest body that is read. Large issuers publish a few kilobytes of keys."""

MAX_REDIRECTS = 3

_MOVED = frozenset((301, 302, 303, 307, 308))
_PORTS = {"https": 443, "http": 80}
_PIECE = 64 * 1024


class Failure(Enum):
    """Why a request has no response."""

    UNREACHABLE = auto()
    """No connection, or none that is trusted. `RequestFailed.cause` says why."""
    BROKEN = auto()
    """A response that cannot be read, or none in time. `RequestFailed.cause` says why."""
    SLOW = auto()
    LONG = auto()
    ELSEWHERE = auto()
    """A redirect that is not followed, to `RequestFailed.location`."""
    REDIRECTS = auto()


class RequestFailed(Exception):  # noqa: N818 - says what happened
    """A request without a response. `url` is the one that was asked last; it may hold what must not be shown."""

    def __init__(
        self, failure: Failure, url: str, *, cause: BaseException | None = None, location: str | None = None
    ) -> None:
        super().__init__(failure.name)
        self.failure = failure
        self.url = url
        self.cause = cause
        self.location = location


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response of any status, and the URL that it came from. The body may hold what must not be shown."""

    url: str
    status: int
    body: bytes = field(repr=False)
    content_type: str = ""


class HttpClient:
    """Sends requests to HTTP servers. `timeout` bounds each wait, and the reading of bodies and redirects as a whole.

    A head that comes drop by drop is bounded in size only: each drop is a wait of its own.

    A GET follows redirects on the same server. Nothing else follows any: it may carry a credential. Certificates are
    verified. With `proxy_https`, a proxy from the environment is used for HTTPS only: it cannot read or change what
    it passes on.
    """

    def __init__(self, timeout: float, tls: ssl.SSLContext | None = None, *, proxy_https: bool = False) -> None:
        self._timeout = timeout
        self._tls = tls
        self._proxy_https = proxy_https

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> HttpResponse:
        """Return the response, of whatever status; raises `RequestFailed`. `split_url` must take the URL.

        `timeout` is for this request, in place of the client's.
        """
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        server = origin(url)
        for _ in range(MAX_REDIRECTS + 1):
            response = self._send(method, url, headers, body, deadline)
            if isinstance(response, HttpResponse):
                return response
            location = urljoin(url, response) if split_url(response) else response
            parts = split_url(location)
            if method != "GET" or parts is None or "@" in parts.netloc or origin(location) != server:
                raise RequestFailed(Failure.ELSEWHERE, url, location=location)
            url = location
        raise RequestFailed(Failure.REDIRECTS, url)

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> HttpResponse | str:
        """Return the response to one request, or the location that it redirects to."""
        from http.client import HTTPException

        from urllib3 import HTTPHeaderDict, Timeout
        from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ProxyError, SSLError

        left = deadline - time.monotonic()
        if left <= 0:
            raise RequestFailed(Failure.SLOW, url)
        # Compression would let a small body become a large one.
        sent = HTTPHeaderDict({"Accept-Encoding": "identity", "User-Agent": "eastgate"})
        for name, value in headers.items():
            sent[name] = value  # replaces one that is spelled in other cases
        sent["Connection"] = "close"
        parts = urlsplit(url)
        manager = self._manager(parts)
        try:
            response = manager.connection_from_host(parts.hostname or "", parts.port, parts.scheme).urlopen(
                method,
                (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
                body=body,
                headers=sent,
                timeout=Timeout(total=left),
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            try:
                return _read(url, response, deadline)
            finally:
                response.close()
        except (NewConnectionError, ConnectTimeoutError, SSLError, ProxyError) as error:
            raise RequestFailed(Failure.UNREACHABLE, url, cause=_root(error)) from error
        except (OSError, HTTPError, HTTPException, ValueError) as error:
            raise RequestFailed(Failure.BROKEN, url, cause=error) from error
        finally:
            manager.clear()

    def _trusted(self) -> ssl.SSLContext:
        if self._tls is None:
            import ssl

            self._tls = ssl.create_default_context()
        return self._tls

    def _proxy(self, host: str) -> str | None:
        from urllib.request import getproxies, proxy_bypass

        proxy = getproxies().get("https")
        if not proxy or proxy_bypass(host):
            return None
        return proxy if "://" in proxy else f"http://{proxy}"

    def _manager(self, parts: SplitResult) -> PoolManager:
        """Return what connects to the server of a URL, for one request.

        A connection is not used again: a server closes it once it has answered, and need not say so.
        """
        from urllib.parse import unquote

        from urllib3 import PoolManager, ProxyManager, make_headers

        if parts.scheme != "https":
            return PoolManager()
        tls = self._trusted()
        proxy = self._proxy(parts.hostname or "") if self._proxy_https else None
        if proxy is None:
            return PoolManager(ssl_context=tls)
        at = urlsplit(proxy)
        login = f"{unquote(at.username)}:{unquote(at.password or '')}" if at.username is not None else None
        return ProxyManager(proxy, proxy_headers=make_headers(proxy_basic_auth=login), ssl_context=tls)


def split_url(url: str) -> SplitResult | None:
    """Return the parts of a URL; None where the text is none, or can be read in two ways."""
    # urllib would remove or reinterpret such characters without a word.
    if not url.isascii() or not url.isprintable() or set(url) & set(' \\"<>^`{|}'):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def origin(url: str) -> tuple[str, str | None, int] | None:
    """Return scheme, host and port of a URL; None where it has none."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return None


def _read(url: str, response: BaseHTTPResponse, deadline: float) -> HttpResponse | str:
    if response.status in _MOVED and (location := response.headers.get("Location")):
        return location
    body = bytearray()
    while piece := response.read1(_PIECE):
        body += piece
        if len(body) > MAX_BYTES:
            raise RequestFailed(Failure.LONG, url)
        if time.monotonic() > deadline:
            raise RequestFailed(Failure.SLOW, url)
    return HttpResponse(url, response.status, bytes(body), response.headers.get("Content-Type", ""))


def _root(error: BaseException) -> BaseException:
    """Return the error of the operating system or of TLS that an error of the library stands for."""
    inner = error.__cause__ or error.__context__ or next((arg for arg in error.args if isinstance(arg, OSError)), None)
    return _root(inner) if inner is not None else error
