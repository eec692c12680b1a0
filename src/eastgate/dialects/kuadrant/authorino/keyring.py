"""The Secrets that schemes select. Selections are cached until a Secret changes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.cluster import Secret, Selector, World
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.outcomes import Broken, Found
from eastgate.reading.strict_json import JsonProblem, read_object

# Fetches the configurations that servers publish, and caches each.


_CACHE_SECONDS: Final = 300  # seconds


def discovered(url: str, evaluation: Evaluation, timeout: float | None = None) -> Mapping[str, object] | Broken:
    """Return the configuration at a URL. The services must have a fetcher."""
    fetcher, cache = evaluation.services.fetcher, evaluation.services.cache
    if fetcher is None:
        return Broken("No server can be asked.")
    key = ("configuration", url)
    held = cache.get(key) if cache is not None else None
    if held is not None and isinstance(held.value, Mapping):
        return held.value
    try:
        answer = fetcher.fetch("GET", url, {"Accept": "application/json"}, None, timeout)
        if answer.status != 200:
            raise Unavailable(f"{url} answers {answer.status}")
        configuration = read_object(answer.body)
    except Unavailable as problem:
        return Broken(f"The configuration of the server cannot be read: {problem}.")
    except JsonProblem as problem:
        return Broken(f"The configuration of the server {problem}.")
    if cache is not None:
        cache.put(key, Found(configuration, None), _CACHE_SECONDS)
    return configuration


API_KEY: Final = "api_key"
"""The entry of a Secret with an API key."""


@dataclass(frozen=True, slots=True)
class _Selected:
    version: int
    selector: Selector
    secrets: tuple[Secret, ...]
    by_key: Mapping[bytes, Secret]


class Keyring:
    """Secrets by selector.

    API keys are found by their hashes, so that the search time reveals nothing about the keys.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._selected: dict[tuple[str | None, int], _Selected] = {}

    def secrets(self, namespace: str | None, selector: Selector) -> tuple[Secret, ...]:
        """Return the currently selected Secrets of one namespace, or of all, in the order of their names."""
        return self._of(namespace, selector).secrets

    def owner(self, namespace: str | None, selector: Selector, key: bytes) -> Secret | None:
        """Return the first of these Secrets with the API key."""
        return self._of(namespace, selector).by_key.get(digest_of(key))

    def secret(self, namespace: str, name: str) -> Secret | None:
        """Return the Secret with a namespace and a name."""
        return self._world.secrets.get(f"{namespace}/{name}")

    def _of(self, namespace: str | None, selector: Selector) -> _Selected:
        name = (namespace, id(selector))
        version = self._world.secrets_version
        selected = self._selected.get(name)
        if selected is None or selected.version != version:
            selected = self._selected[name] = self._select(namespace, selector, version)
        return selected

    def _select(self, namespace: str | None, selector: Selector, version: int) -> _Selected:
        """Select again. `version` was read before, so a change during the selection causes another one."""
        declared = [secret for secret in list(self._world.secrets.values()) if namespace in (None, secret.namespace)]
        secrets = tuple(sorted((each for each in declared if selector.matches(each.labels)), key=_name))
        by_key: dict[bytes, Secret] = {}
        for secret in secrets:
            if key := secret.data.get(API_KEY):
                by_key.setdefault(digest_of(key), secret)
        return _Selected(version, selector, secrets, by_key)


def digest_of(key: bytes) -> bytes:
    """Return the hash under which an API key is found."""
    return hashlib.sha256(key).digest()


def _name(secret: Secret) -> tuple[str, str]:
    return secret.namespace, secret.name
