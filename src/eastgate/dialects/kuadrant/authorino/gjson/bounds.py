"""Limits the work of one selection.

Selectors come from policy authors and documents from callers. Together they could make small texts grow without end
(`[@this,@this]|[@this,@this]|...`). So every selection has one budget, and ends when the budget is used up.
"""

from __future__ import annotations

MAX_PATH = 4096
"""Characters of a path."""
MAX_TEMPLATE = 65536
"""Characters of a template."""
MAX_DEPTH = 100
"""Levels of nesting, for paths in paths, walked data and printed data."""
MAX_TEXT = 1 << 20
"""Characters of any text that a selection produces."""
MAX_WORK = 4 << 20
"""Members visited plus characters read and written, by one selection or one template."""


class TooMuch(ValueError):  # noqa: N818 - says what happened to the caller that must now fail closed
    """A selection exceeded a limit, or would make the original panic. The caller must fail closed."""


class Budget:
    """The remaining work of one selection, and its current nesting depth."""

    __slots__ = ("_depth", "_left")

    def __init__(self) -> None:
        self._left = MAX_WORK
        self._depth = 0

    def spend(self, work: int) -> None:
        """Subtract `work` from the budget."""
        self._left -= work
        if self._left < 0:
            raise TooMuch(f"the selection takes more than {MAX_WORK} steps")

    def enter(self) -> None:
        """Go one level deeper. An exception does not undo this, because no code continues after TooMuch."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooMuch(f"the selection is nested deeper than {MAX_DEPTH} levels")

    def leave(self) -> None:
        """Come back up one level."""
        self._depth -= 1

    def afford(self, text: str) -> str:
        """Return the text and subtract its length. Raises TooMuch if it is too long."""
        if len(text) > MAX_TEXT:
            raise TooMuch(f"the selection produces more than {MAX_TEXT} characters")
        self.spend(len(text))
        return text


class Pieces:
    """A text under construction. Its size is known before its pieces are joined."""

    __slots__ = ("_budget", "_pieces", "_size")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._pieces: list[str] = []
        self._size = 0

    def add(self, *pieces: str) -> None:
        """Append a piece. Raises TooMuch if the text gets too long."""
        size = len(pieces) + sum(map(len, pieces))
        self._size += size
        if self._size > MAX_TEXT:
            raise TooMuch(f"the selection produces more than {MAX_TEXT} characters")
        self._budget.spend(size)
        self._pieces += pieces

    def joined(self) -> str:
        """Return all pieces in one text."""
        return "".join(self._pieces)

    def enclosed(self, brackets: str) -> str:
        """Return all pieces, separated by commas, between an opening and a closing bracket."""
        return brackets[0] + ",".join(self._pieces) + brackets[1]
