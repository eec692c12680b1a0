"""`re.compile` that compiles on first use.

Compiling the patterns of all modules takes longer than most commands, which use a few of them. So a pattern that a
module keeps is made by `regex`. For type checkers, and for whoever calls its methods, it is a `re.Pattern`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["regex"]


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
