"""Discovers the keys that issuers publish on the web (OpenID Connect Discovery 1.0), and caches them.

An issuer may withdraw a key or add one between two fetches. The settings of `DiscoveredKeys` limit the age of keys and
the rate of fetches that callers can cause. Keys that are too old are not used: verification fails closed.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import SplitResult

from eastgate.basics.http import MAX_BYTES, MAX_REDIRECTS, Failure, HttpClient, RequestFailed, split_url
from eastgate.basics.records import dataclass
from eastgate.reading.jwt.keys import Keys, NoKeysError
from eastgate.reading.jwt.sources import KeySource, KeysUnavailable
from eastgate.reading.strict_json import Json, JsonProblem, read_object

if TYPE_CHECKING:
    import ssl


# Fetches a JSON document from an issuer over HTTP, with limits, and only from the server of the URL.


class DocumentFetcher:
    """Fetches documents. `timeout` is the limit for one document, in seconds."""

    def __init__(self, timeout: float, tls: ssl.SSLContext | None = None) -> None:
        self._client = HttpClient(timeout, tls, proxy_https=True)

    def document(self, url: str) -> dict[str, Json]:
        """Return the JSON object at this URL. Raises `KeysUnavailable`."""
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
    """Return the parts of a URL that keys may be fetched from: HTTPS, or HTTP on this machine."""
    parts = split_url(url)
    if parts is None:
        _refuse(url, "is not a URL")
    if not parts.hostname or parts.port == 0:
        _refuse(url, "names no server")
    if "@" in parts.netloc:
        raise KeysUnavailable("the URL has a user name in it")  # not repeated, because it may have a password
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
            checked_url(failed.location or "")  # gives a better message for a URL that keys may not come from
            problem = "redirects to another server, which is not followed"
    return f"{failed.url} {problem}"


class _Withdrawn(KeysUnavailable):
    """Error: the issuer publishes a key set without any key."""


@dataclass(slots=True)
class _CachedKeys:
    """The cached keys of one URL. One thread at a time fetches them."""

    keys: Keys | None = None
    document: dict[str, Json] | None = None
    fetched: float = 0
    tried: float | None = None
    problem: str = "they were never fetched"
    lock: threading.Lock = field(default_factory=threading.Lock)


class _FetchedKeys:
    """Keys that are fetched from a URL, and cached.

    Keys younger than `fresh_for` are used without a fetch. Older keys are fetched again by one thread, while the others
    use the cached ones. If the fetch fails, the cached keys are used until they are `usable_for` old, unless the issuer
    has withdrawn all of them. Two fetches are never less than `min_interval` apart, whether tokens name unknown keys or
    the issuer is down. All values are in seconds.
    """

    def __init__(
        self,
        *,
        fresh_for: float = 600,
        usable_for: float = 3600,
        min_interval: float = 30,
        timeout: float = 5,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 <= min_interval <= fresh_for <= usable_for:
            raise ValueError("min_interval must not exceed fresh_for, nor that usable_for")
        self._fresh_for = fresh_for
        self._usable_for = usable_for
        self._min_interval = min_interval
        self._clock = clock
        self._fetcher = DocumentFetcher(timeout, tls)
        self._held: dict[str, _CachedKeys] = {}

    def keys(self, issuer_url: str) -> Keys:
        """Return the keys. If they are not fresh, fetch them."""
        held = self._of(issuer_url)
        keys = held.keys
        if keys is not None and self._age(held) < self._fresh_for:
            return keys
        # A thread with usable keys does not wait for newer ones.
        if not held.lock.acquire(blocking=keys is None or self._age(held) >= self._usable_for):
            return self._usable(held)
        try:
            if held.keys is None or self._age(held) >= self._fresh_for:
                self._fetch(issuer_url, held)
            return self._usable(held)
        finally:
            held.lock.release()

    def fresh_keys(self, issuer_url: str) -> Keys | None:
        """Return the keys if they are fresh, without a fetch."""
        held = self._of(issuer_url)
        keys = held.keys
        return keys if keys is not None and self._age(held) < self._fresh_for else None

    def newer_keys(self, issuer_url: str, than: Keys) -> Keys:
        """Return newer keys. Fetch them if these are still the newest, and the last fetch is long enough ago."""
        held = self._of(issuer_url)
        with held.lock:
            if held.keys is None or held.keys is than:
                self._fetch(issuer_url, held)
            return self._usable(held)

    def _of(self, issuer_url: str) -> _CachedKeys:
        known = self._held.get(issuer_url)
        return known or self._held.setdefault(issuer_url, _CachedKeys())  # atomic: threads share a lock

    def _age(self, held: _CachedKeys) -> float:
        return self._clock() - held.fetched

    def _fetch(self, issuer_url: str, held: _CachedKeys) -> None:
        now = self._clock()
        if held.tried is not None and now - held.tried < self._min_interval:
            return
        held.tried = now
        try:
            document = self._document(issuer_url)
            if held.keys is None or document != held.document:
                held.keys = _keys_of(document, issuer_url)
                held.document = document
            held.fetched = now
        except _Withdrawn as problem:
            held.keys, held.document, held.problem = None, None, str(problem)
        except KeysUnavailable as problem:
            held.problem = str(problem)

    def _usable(self, held: _CachedKeys) -> Keys:
        keys = held.keys
        if keys is None or self._age(held) >= self._usable_for:
            raise KeysUnavailable(held.problem)
        return keys

    @abstractmethod
    def _document(self, url: str, /) -> dict[str, Json]:
        """Fetch the key set. Raises KeysUnavailable."""


def _keys_of(document: dict[str, Json], url: str) -> Keys:
    try:
        return Keys.of(document)
    except NoKeysError as problem:
        raise _Withdrawn(f"{url}: {problem}") from problem
    except ValueError as problem:
        raise KeysUnavailable(f"{url}: {problem}") from problem


class PublishedKeys(_FetchedKeys):
    """Keys at a fixed URL, over HTTPS, or HTTP on this machine. See `DiscoveredKeys` for the settings."""

    def _document(self, url: str, /) -> dict[str, Json]:
        return self._fetcher.document(url)


class DiscoveredKeys(_FetchedKeys):
    """Keys by OpenID Connect discovery, over HTTPS, or HTTP on this machine.

    Keys younger than `fresh_for` are used without a fetch. Older keys are fetched again. If the fetch fails, they are
    used until they are `usable_for` old. Two fetches are never less than `min_interval` apart, whether tokens name
    unknown keys or the issuer is down. All values are in seconds.
    """

    def __init__(
        self,
        *,
        fresh_for: float = 600,
        usable_for: float = 3600,
        min_interval: float = 30,
        timeout: float = 5,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        limits = {"fresh_for": fresh_for, "usable_for": usable_for, "min_interval": min_interval, "timeout": timeout}
        super().__init__(**limits, tls=tls, clock=clock)
        self._key_sets = PublishedKeys(**limits, tls=tls, clock=clock)

    def _document(self, issuer_url: str, /) -> dict[str, Json]:
        issuer = checked_url(issuer_url)
        if issuer.query or issuer.fragment:
            raise KeysUnavailable(f"{issuer_url} is not an issuer: it has a query or a fragment")
        about = self._fetcher.document(f"{issuer_url.removesuffix('/')}/.well-known/openid-configuration")
        if about.get("issuer") != issuer_url:
            # Otherwise one issuer could publish the keys of another.
            raise KeysUnavailable(f"the server at {issuer_url} says that it is another issuer")
        jwks_uri = about.get("jwks_uri")
        if not isinstance(jwks_uri, str):
            raise KeysUnavailable(f"the issuer {issuer_url} does not say where its keys are (jwks_uri)")
        if issuer.scheme == "https" and checked_url(jwks_uri).scheme != "https":
            raise KeysUnavailable(f"the issuer {issuer_url} has its keys where anyone could replace them (not HTTPS)")
        return self._fetcher.document(jwks_uri)


class NotAtHand(Exception):  # noqa: N818 - says what is known
    """Error: the keys of an issuer are not cached, or no longer fresh."""


class CachedKeys:
    """The fresh keys of a source. It never fetches: instead it raises NotAtHand."""

    def __init__(self, source: _FetchedKeys) -> None:
        self._source = source

    def keys(self, issuer_url: str) -> Keys:
        """Return the keys, which are fresh."""
        keys = self._source.fresh_keys(issuer_url)
        if keys is None:
            raise NotAtHand
        return keys

    def newer_keys(self, issuer_url: str, than: Keys) -> Keys:  # noqa: ARG002 - it looks for none
        """Return the same keys. Another component fetches newer ones."""
        raise NotAtHand


def keys_at_hand(source: KeySource) -> KeySource:
    """Return a source of the same keys that never fetches."""
    return CachedKeys(source) if isinstance(source, _FetchedKeys) else source


def key_sets_of(source: KeySource) -> KeySource:
    """Return the source for keys that are published at a fixed URL. It has the settings of a source by issuers."""
    return source._key_sets if isinstance(source, DiscoveredKeys) else source
