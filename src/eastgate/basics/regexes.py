"""Regular expressions: those of modules, which are compiled on first use, and those of users, which RE2 matches.

Compiling the patterns of all modules takes longer than most commands, which use a few of them. So a pattern that a
module keeps is made by `regex`. For type checkers, and for whoever calls its methods, it is a `re.Pattern`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

__all__ = ["Re2Pattern", "as_utf8", "compile_re2", "regex"]


class _Regex:
    """A pattern whose slots are filled with the methods of the compiled one when the first of them is used."""

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
    """An expression of RE2, whose matches are as those of `re`."""

    def search(self, text: str | bytes) -> Any: ...

    def fullmatch(self, text: str | bytes) -> Any: ...

    def finditer(self, text: str | bytes) -> Any: ...


@lru_cache(maxsize=4096)
def compile_re2(pattern: str | bytes) -> Re2Pattern | str:
    """Compile an expression of a user as Go does: with RE2, which never takes longer than the text is long.

    Return what is wrong with it, in the words of RE2, if it is no expression.
    """
    import re2  # few commands meet one

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
    """Encode as UTF-8, also what is no character: half of a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")
