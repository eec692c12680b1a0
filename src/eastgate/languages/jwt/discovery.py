"""Discovers the keys that issuers publish on the web (OpenID Connect Discovery 1.0), and caches them for a while.

Between two fetches an issuer may withdraw a key or add one. How old keys may get, and how often anyone may make us look
for new ones, are the settings of `DiscoveredKeys`. Keys that are too old are no keys: it fails closed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from eastgate.languages.jwt.fetch import DocumentFetcher, checked_url
from eastgate.languages.jwt.keys import Keys
from eastgate.languages.jwt.sources import KeysUnavailable
from eastgate.records import dataclass

if TYPE_CHECKING:
    import ssl

__all__ = ["DiscoveredKeys"]


@dataclass(slots=True)
class _CachedKeys:
    """The cached keys of one issuer. One thread at a time fetches; the others wait for the result."""

    keys: Keys | None = None
    fetched: float = 0
    tried: float | None = None
    problem: str = "they were never fetched"
    lock: threading.Lock = field(default_factory=threading.Lock)


class DiscoveredKeys:
    """Keys by OpenID Connect discovery, over HTTPS, or HTTP on this very machine.

    Keys younger than `fresh_for` are used as they are. Older ones are fetched anew; while that fails they go on being
    used until they are `usable_for` old. Two fetches are never less than `min_interval` apart, whether tokens name
    unknown keys or the issuer is down. All in seconds.
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
        """Return the issuer's keys, fetched if they are not fresh."""
        held = self._of(issuer_url)
        with held.lock:
            if held.keys is None or self._clock() - held.fetched >= self._fresh_for:
                self._fetch(issuer_url, held)
            return self._usable(held)

    def newer_keys(self, issuer_url: str, than: Keys) -> Keys:
        """Return the issuer's keys, fetched if these are still the newest and the last fetch is long enough ago."""
        held = self._of(issuer_url)
        with held.lock:
            if held.keys is None or held.keys is than:
                self._fetch(issuer_url, held)
            return self._usable(held)

    def _of(self, issuer_url: str) -> _CachedKeys:
        return self._held.setdefault(issuer_url, _CachedKeys())  # atomic, so that two threads share one lock

    def _fetch(self, issuer_url: str, held: _CachedKeys) -> None:
        now = self._clock()
        if held.tried is not None and now - held.tried < self._min_interval:
            return
        held.tried = now
        try:
            held.keys = self._discovered(issuer_url)
            held.fetched = now
        except KeysUnavailable as problem:
            held.problem = str(problem)

    def _usable(self, held: _CachedKeys) -> Keys:
        if held.keys is None or self._clock() - held.fetched >= self._usable_for:
            raise KeysUnavailable(held.problem)
        return held.keys

    def _discovered(self, issuer_url: str) -> Keys:
        issuer = checked_url(issuer_url)
        if issuer.query or issuer.fragment:
            raise KeysUnavailable(f"{issuer_url} is not an issuer: it has a query or a fragment")
        about = self._fetcher.document(f"{issuer_url.removesuffix('/')}/.well-known/openid-configuration")
        if about.get("issuer") != issuer_url:
            # Or else one issuer could hand out the keys of another.
            raise KeysUnavailable(f"the server at {issuer_url} says that it is another issuer")
        jwks_uri = about.get("jwks_uri")
        if not isinstance(jwks_uri, str):
            raise KeysUnavailable(f"the issuer {issuer_url} does not say where its keys are (jwks_uri)")
        if issuer.scheme == "https" and checked_url(jwks_uri).scheme != "https":
            raise KeysUnavailable(f"the issuer {issuer_url} has its keys where anyone could replace them (not HTTPS)")
        try:
            return Keys.of(self._fetcher.document(jwks_uri))
        except ValueError as problem:
            raise KeysUnavailable(f"{jwks_uri}: {problem}") from problem
