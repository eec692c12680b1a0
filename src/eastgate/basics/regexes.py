"""Regular expressions: those of modules, compiled on first use, and those of users, matched by RE2.

Compiling the patterns of all modules takes longer than most commands, which use few of them. So modules create their
patterns with `regex`. Type checkers and callers see a `re.Pattern`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

__all__ = ["Re2Pattern", "as_utf8", "compile_re2", "regex"]


class _Regex:
    """A pattern that is compiled on first use: then its slots get the methods of the compiled pattern."""

    __slots__ = (
        "_flags",
        "_source",
        "findall",
        "finditer",
        "fullmatch",
        "match",
        "pattern",
        "search",
        "split",
        "sub",
        "subn",
    )

    def __init__(self, source: str | bytes, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._source, self._flags)
        for slot in self.__slots__:
            if not slot.startswith("_"):
                setattr(self, slot, getattr(compiled, slot))
        return getattr(compiled, name)


if TYPE_CHECKING:
    from re import compile as regex
else:
    regex = _Regex


class Re2Pattern(Protocol):
    """An expression of RE2 with the interface of `re`."""

    def search(self, text: str | bytes) -> Any: ...

    def fullmatch(self, text: str | bytes) -> Any: ...

    def finditer(self, text: str | bytes) -> Any: ...


@lru_cache(maxsize=4096)
def compile_re2(pattern: str | bytes) -> Re2Pattern | str:
    """Compile an expression of a user as Go does: with RE2, whose time is linear in the length of the text.

    For an invalid expression, return the error, in RE2's words.
    """
    import re2  # few commands need it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        compiled: Re2Pattern = re2.compile(pattern, options)
    except re2.error as problem:
        (message,) = problem.args
        return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    return compiled


def as_utf8(text: str) -> bytes:
    """Encode a text as UTF-8, even if it contains half of a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")
