"""Regular expressions that somebody else wrote, matched with RE2: no expression can make it take long."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

__all__ = ["matches_pattern", "pattern_problem"]


def pattern_problem(pattern: str) -> str | None:
    """What keeps a text from being an RE2 expression, as RE2 says it."""
    found = _compiled(pattern)
    return found if isinstance(found, str) else None


def matches_pattern(pattern: str, text: str) -> bool:
    """Whether an expression matches all of a text. One that is no expression matches nothing."""
    found = _compiled(pattern)
    return not isinstance(found, str) and found(_bytes(text)) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> Callable[[bytes], object | None] | str:
    import re2  # here, because few worlds have such a route

    options = re2.Options()
    options.log_errors = False
    try:
        compiled: Callable[[bytes], object | None] = re2.compile(_bytes(pattern), options).fullmatch
    except re2.error as problem:
        (said,) = problem.args
        return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return compiled


def _bytes(text: str) -> bytes:
    """UTF-8, also of what is none: a half of a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")
