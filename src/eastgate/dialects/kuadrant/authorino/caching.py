"""Caches answers for a while: only good ones, and never more than fit."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson
from eastgate.dialects.kuadrant.authorino.findings import Finding, Found
from eastgate.dialects.kuadrant.authorino.model import Cache, Scheme
from eastgate.dialects.kuadrant.authorino.values import resolve


@dataclass(frozen=True, slots=True)
class _CachedAnswer:
    answer: Found
    until: float


class AnswerCache:
    """Answers by scheme, evaluator and key. The least recently used give way; a scheme read anew starts empty."""

    def __init__(self, size: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._clock = clock
        self._held: OrderedDict[tuple[object, ...], _CachedAnswer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...]) -> Found | None:
        """Return the answer, unless it is too old."""
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None
            if self._clock() >= held.until:
                del self._held[key]
                return None
            self._held.move_to_end(key)
            return held.answer

    def put(self, key: tuple[object, ...], answer: Found, seconds: float) -> None:
        """Keep an answer for so long."""
        if seconds <= 0:
            return
        with self._lock:
            self._held[key] = _CachedAnswer(answer, self._clock() + seconds)
            self._held.move_to_end(key)
            while len(self._held) > self._size:
                self._held.popitem(last=False)

    def __len__(self) -> int:
        return len(self._held)


def ask_cached(
    cache: AnswerCache | None,
    settings: Cache | None,
    owner: tuple[Scheme, object],
    document: AuthorizationJson,
    ask: Callable[[], Finding],
    good_for: Callable[[Found], float | None] = lambda _: None,
) -> Finding:
    """Return the cached answer, or ask for it and cache it. `good_for` may shorten the time of an answer.

    A key that is null, or cannot be resolved, means that nothing is cached. `owner` is what the answer belongs to: the
    evaluator is known by its place in memory, which the scheme keeps for as long as the key is held.
    """
    if cache is None or settings is None:
        return ask()
    selected = resolve(settings.key, document)
    if not isinstance(selected, Found) or selected.value is None:
        return ask()
    scheme, evaluator = owner
    key = (scheme, id(evaluator), json.dumps(selected.value, sort_keys=True, default=str))
    held = cache.get(key)
    if held is not None:
        return Found(held.value, held.masked, "It was so a moment ago, which is still good.")
    answer = ask()
    if isinstance(answer, Found):
        limit = good_for(answer)
        cache.put(key, answer, settings.seconds if limit is None else min(settings.seconds, limit))
    return answer
