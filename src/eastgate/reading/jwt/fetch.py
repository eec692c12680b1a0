"""Getting a JSON document from an issuer over HTTP, within bounds, from nowhere else than it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn
from urllib.parse import SplitResult

from eastgate.basics.http import MAX_BYTES, MAX_REDIRECTS, Failure, HttpClient, RequestFailed, split_url
from eastgate.reading.jwt.sources import KeysUnavailable
from eastgate.reading.strict_json import Json, JsonProblem, read_object

if TYPE_CHECKING:
    import ssl


class DocumentFetcher:
    """Reads documents. `timeout` bounds a document as a whole, in seconds."""

    def __init__(self, timeout: float, tls: ssl.SSLContext | None = None) -> None:
        self._client = HttpClient(timeout, tls, proxy_https=True)

    def document(self, url: str) -> dict[str, Json]:
        """Return the JSON object at this URL; raises `KeysUnavailable`."""
        checked_url(url)
        try:
            response = self._client.request("GET", url, {"Accept": "application/json"})
        except RequestFailed as failed:
            raise KeysUnavailable(_explain(failed)) from failed.cause
        if response.status != 200:
            raise KeysUnavailable(f"{response.url} answered {response.status}")
        try:
            return read_object(response.body)
        except JsonProblem as problem:
            raise KeysUnavailable(f"{response.url} {problem}") from None


def checked_url(url: str) -> SplitResult:
    """Return the parts of a URL that keys may be fetched from: HTTPS, or HTTP on this very machine."""
    parts = split_url(url)
    if parts is None:
        _refuse(url, "is not a URL")
    if not parts.hostname or parts.port == 0:
        _refuse(url, "names no server")
    if "@" in parts.netloc:
        raise KeysUnavailable("the URL has a user name in it")  # perhaps with a password: not repeated
    if parts.scheme != "https" and (parts.scheme != "http" or not _is_loopback(parts.hostname)):
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


def _explain(failed: RequestFailed) -> str:
    match failed.failure:
        case Failure.UNREACHABLE:
            problem = f"cannot be reached: {failed.cause}"
        case Failure.BROKEN:
            problem = f"cannot be read: {type(failed.cause).__name__}"
        case Failure.SLOW:
            problem = "takes too long to read"
        case Failure.LONG:
            problem = f"is longer than {MAX_BYTES} bytes"
        case Failure.REDIRECTS:
            problem = f"redirects more than {MAX_REDIRECTS} times"
        case Failure.ELSEWHERE:
            checked_url(failed.location or "")  # says more, where it is no URL that keys may come from
            problem = "redirects to another server, which is not followed"
    return f"{failed.url} {problem}"
