"""An HTTP client with limits on time, on size, and on the servers that a request may reach.

It uses httpcore2, the engine of httpx2, which adds no redirects, cookies or proxies.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import field
from enum import Enum, auto
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from eastgate.basics.records import dataclass

if TYPE_CHECKING:
    import ssl

    from httpcore2 import URL, ConnectionPool, Proxy, Response

MAX_BYTES = 512 * 1024
"""The limit for a response body. Large issuers publish a few kilobytes of keys."""

MAX_REDIRECTS = 3

_REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))
_PORTS = {"https": 443, "http": 80}
_WITHOUT_BODY = frozenset(("GET", "HEAD", "DELETE", "TRACE", "OPTIONS", "CONNECT"))


class Failure(Enum):
    """The reason why a request has no response."""

    UNREACHABLE = auto()
    """No connection, or no trusted one. `RequestFailed.cause` has the error."""
    BROKEN = auto()
    """No valid response, or none in time. `RequestFailed.cause` has the error."""
    SLOW = auto()
    LONG = auto()
    ELSEWHERE = auto()
    """A redirect that is not followed, to `RequestFailed.location`."""
    REDIRECTS = auto()


class RequestFailed(Exception):  # noqa: N818 - the name is an event
    """A request without a response. `url` is the last requested one; it may have secrets."""

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
    """A response of any status, and its URL. The body may have secrets."""

    url: str
    status: int
    body: bytes = field(repr=False)
    content_type: str = ""


class HttpClient:
    """Sends requests to HTTP servers. `timeout` limits a request as a whole, with its redirects.

    A GET follows redirects on the same server. Other redirects are refused, since the request may have a credential.
    Certificates are verified. With `proxy_https`, a proxy from the environment is used for HTTPS only: such a proxy
    cannot read or change the request.
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
        """Return the response of any status. Raises `RequestFailed`. `split_url` must accept the URL.

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
        """Send one request. Return the response, or the location of a redirect."""
        import httpcore2

        parts = urlsplit(url)
        try:
            request = httpcore2.Request(
                method, _address(parts), headers=_headers(method, parts, headers, body), content=body
            )
            with self._pool(parts, deadline) as pool, closing(pool.handle_request(request)) as response:
                return _read(url, response)
        except httpcore2.ProxyError as error:
            problem = OSError(f"the proxy answers {error}")
            raise RequestFailed(Failure.UNREACHABLE, url, cause=problem) from error
        except (httpcore2.ReadTimeout, httpcore2.WriteTimeout) as error:
            raise RequestFailed(Failure.SLOW, url, cause=error) from error
        except (httpcore2.NetworkError, httpcore2.ConnectTimeout) as error:
            cause = _root(error)
            is_connected = isinstance(error, httpcore2.ReadError | httpcore2.WriteError)
            failure = Failure.BROKEN if is_connected and not _is_of_tls(cause) else Failure.UNREACHABLE
            raise RequestFailed(failure, url, cause=cause) from error
        except (httpcore2.ProtocolError, OSError, ValueError) as error:
            raise RequestFailed(Failure.BROKEN, url, cause=error) from error

    def _trusted(self) -> ssl.SSLContext:
        if self._tls is None:
            import ssl

            self._tls = ssl.create_default_context()
        return self._tls

    def _proxy(self, host: str) -> Proxy | None:
        from urllib.parse import unquote
        from urllib.request import getproxies, proxy_bypass

        from httpcore2 import Proxy

        proxy = getproxies().get("https")
        if not proxy or proxy_bypass(host):
            return None
        at = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        if at.scheme not in _PORTS:
            raise ValueError("a proxy that is not asked by HTTP")
        login = None
        if at.username is not None:
            login = unquote(at.username).encode("latin-1"), unquote(at.password or "").encode("latin-1")
        return Proxy(_address(at), auth=login, ssl_context=self._trusted() if at.scheme == "https" else None)

    def _pool(self, parts: SplitResult, deadline: float) -> ConnectionPool:
        """Return a connection pool for the server of a URL, for one request.

        Connections are not reused: a server may close one after its answer without notice.
        """
        from httpcore2 import ConnectionPool

        from eastgate.basics.deadlines import DeadlineBackend

        backend = DeadlineBackend(deadline)
        if parts.scheme != "https":
            return ConnectionPool(network_backend=backend)
        proxy = self._proxy(parts.hostname or "") if self._proxy_https else None
        return ConnectionPool(self._trusted(), proxy, network_backend=backend)


def split_url(url: str) -> SplitResult | None:
    """Return the parts of a URL; None for an invalid or ambiguous URL."""
    # urllib would silently remove or reinterpret such characters.
    if not url.isascii() or not url.isprintable() or set(url) & set(' \\"<>^`{|}'):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def origin(url: str) -> tuple[str, str | None, int] | None:
    """Return scheme, host and port of a URL, or None."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return None


def _address(parts: SplitResult) -> URL:
    """Return a URL for httpcore2, with the target as written."""
    from httpcore2 import URL

    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return URL(scheme=parts.scheme, host=parts.hostname or "", port=parts.port, target=target)


def _headers(
    method: str, parts: SplitResult, headers: Mapping[str, str], body: bytes | None
) -> list[tuple[bytes, bytes]]:
    name = parts.hostname or ""
    host = f"[{name}]" if ":" in name else name
    at = host if parts.port in (None, _PORTS.get(parts.scheme)) else f"{host}:{parts.port}"
    # With compression, a small body could expand to a large one.
    sent = {
        "host": ("Host", at),
        "accept-encoding": ("Accept-Encoding", "identity"),
        "user-agent": ("User-Agent", "eastgate"),
    }
    if body is not None or method not in _WITHOUT_BODY:
        sent["content-length"] = ("Content-Length", str(len(body or b"")))
    sent |= {name.lower(): (name, value) for name, value in headers.items()}  # replaces one with other letter case
    sent["connection"] = ("Connection", "close")
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent.values()]


def _read(url: str, response: Response) -> HttpResponse | str:
    """Return a response, or the location of a redirect."""
    if response.status in _REDIRECT_STATUSES and (location := _header(response, b"location")):
        return location
    body = bytearray()
    for piece in response.iter_stream():
        body += piece
        if len(body) > MAX_BYTES:
            raise RequestFailed(Failure.LONG, url)
    return HttpResponse(url, response.status, bytes(body), _header(response, b"content-type"))


def _header(response: Response, name: bytes) -> str:
    return ", ".join(value.decode("latin-1") for key, value in response.headers if key.lower() == name)


def _root(error: BaseException) -> BaseException:
    """Return the error of the operating system or of TLS behind an error of the library."""
    return next((arg for arg in error.args if isinstance(arg, OSError)), error)


def _is_of_tls(error: BaseException) -> bool:
    import ssl

    return isinstance(error, ssl.SSLError)
