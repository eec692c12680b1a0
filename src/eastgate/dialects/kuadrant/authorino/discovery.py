"""Fetches the configurations that servers publish, and keeps each for a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Found
from eastgate.reading.strict_json import JsonProblem, read_object

_KEPT: Final = 300  # seconds


def discovered(url: str, evaluation: Evaluation, timeout: float | None = None) -> Mapping[str, object] | Broken:
    """Return the configuration at a URL. There must be a fetcher."""
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
        cache.put(key, Found(configuration, None), _KEPT)
    return configuration
