"""Getting a JSON document from an issuer over HTTP, within bounds, from nowhere else than it was asked for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import SplitResult, urljoin, urlsplit

from eastgate.tokens.sources import KeysUnavailable
from eastgate.tokens.strict_json import Json, JsonProblem, read_object

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector

__all__ = ["MAX_BYTES", "MAX_REDIRECTS", "Fetcher", "checked_url"]

MAX_BYTES = 512 * 1024
"""The longest answer that is read. Large issuers publish a few kilobytes of keys."""

MAX_REDIRECTS = 3

_MOVED = frozenset((301, 302, 303, 307, 308))
_PORTS = {"https": 443, "http": 80}


class Fetcher:
    """Reads documents. `timeout` bounds each wait for the other side, and the reading of one body as a whole.

    A proxy from the environment is used for HTTPS only: it cannot read or change what it passes on.
    """

    def __init__(self, timeout: float, tls: ssl.SSLContext | None = None) -> None:
        self._timeout = timeout
        self._tls = tls
        self._opener: OpenerDirector | None = None

    def document(self, url: str) -> dict[str, Json]:
        """The JSON object at this URL; raises `KeysUnavailable`."""
        deadline = time.monotonic() + self._timeout
        asked = checked_url(url)
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._get(url, deadline)
            if isinstance(answer, bytes):
                return _read(url, answer)
            moved = urljoin(url, answer)
            if _origin(checked_url(moved)) != _origin(asked):
                raise KeysUnavailable(f"{url} redirects to another server, which is not followed")
            url = moved
        raise KeysUnavailable(f"{url} redirects more than {MAX_REDIRECTS} times")

    def _get(self, url: str, deadline: float) -> bytes | str:
        """The body, or where it has moved to."""
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.request import Request

        # Compression would let a small answer become a large one.
        request = Request(url, headers={"Accept": "application/json", "Accept-Encoding": "identity"})  # noqa: S310
        try:
            with self._connected().open(request, timeout=self._timeout) as response:
                return _body(url, response, deadline)
        except HTTPError as error:
            with error:
                if error.code in _MOVED and (location := error.headers.get("Location")):
                    return str(location)
            raise KeysUnavailable(f"{url} answered {error.code}") from None
        except URLError as error:
            raise KeysUnavailable(f"{url} cannot be reached: {error.reason}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise KeysUnavailable(f"{url} cannot be read: {type(error).__name__}") from error

    def _connected(self) -> OpenerDirector:
        """Made by hand, since urllib's own opener also reads files and follows redirects anywhere."""
        if self._opener is None:
            import ssl
            from urllib import request as urllib_request

            proxies = {name: at for name, at in urllib_request.getproxies().items() if name == "https"}
            opener = urllib_request.OpenerDirector()
            for handler in (
                urllib_request.ProxyHandler(proxies),
                urllib_request.HTTPHandler(),
                urllib_request.HTTPSHandler(context=self._tls or ssl.create_default_context()),
                urllib_request.HTTPDefaultErrorHandler(),
                urllib_request.HTTPErrorProcessor(),
            ):
                opener.add_handler(handler)
            self._opener = opener
        return self._opener


def checked_url(url: str) -> SplitResult:
    """The parts of a URL that keys may be fetched from: HTTPS, or HTTP on this very machine."""
    if not url.isascii() or not url.isprintable() or set(url) & set(' \\"<>'):
        _refuse(url, "is not a URL")  # urllib would remove or reinterpret such characters without a word
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        _refuse(url, "is not a URL")
    if not parts.hostname or port == 0:
        _refuse(url, "names no server")
    if "@" in parts.netloc:
        raise KeysUnavailable("the URL has a user name in it")  # perhaps with a password: not repeated
    if parts.scheme not in _PORTS or (parts.scheme == "http" and not _is_loopback(parts.hostname)):
        _refuse(url, "is not HTTPS")
    return parts


def _refuse(url: str, problem: str) -> NoReturn:
    raise KeysUnavailable(f"{url!r} {problem}")


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _origin(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]


def _body(url: str, response: HTTPResponse, deadline: float) -> bytes:
    if response.status != 200:
        raise KeysUnavailable(f"{url} answered {response.status}")
    read = bytearray()
    while chunk := response.read1(64 * 1024):
        read += chunk
        if len(read) > MAX_BYTES:
            raise KeysUnavailable(f"{url} is longer than {MAX_BYTES} bytes")
        if time.monotonic() > deadline:
            raise KeysUnavailable(f"{url} takes too long to read")
    return bytes(read)


def _read(url: str, body: bytes) -> dict[str, Json]:
    try:
        return read_object(body)
    except JsonProblem as problem:
        raise KeysUnavailable(f"{url} {problem}") from None
