"""Regular expressions of manifests, matched with RE2, so that no expression can take long."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...


class _Expression(Protocol):
    def fullmatch(self, text: bytes) -> _Match | None: ...

    def search(self, text: bytes) -> _Match | None: ...


def pattern_problem(pattern: str) -> str | None:
    """Return what keeps a text from being an RE2 expression, in the words of RE2; None if it is one."""
    compiled = _compiled(pattern)
    return compiled if isinstance(compiled, str) else None


def matches_pattern(pattern: str, text: str) -> bool:
    """Return whether an expression matches all of a text. One that is no expression matches nothing."""
    compiled = _compiled(pattern)
    return not isinstance(compiled, str) and compiled.fullmatch(_bytes(text)) is not None


def spans_first_match(pattern: str, text: str) -> bool:
    """Return whether the first match of an expression in a text, with alternatives tried in order, is all of it."""
    compiled = _compiled(pattern)
    if isinstance(compiled, str):
        return False
    subject = _bytes(text)
    match = compiled.search(subject)
    return match is not None and match.span() == (0, len(subject))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> _Expression | str:
    import re2  # here, because few worlds have such a route

    options = re2.Options()
    options.log_errors = False
    try:
        compiled: _Expression = re2.compile(_bytes(pattern), options)
    except re2.error as problem:
        (message,) = problem.args
        return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    return compiled


def _bytes(text: str) -> bytes:
    """Encode as UTF-8, also what is no character: half of a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")
