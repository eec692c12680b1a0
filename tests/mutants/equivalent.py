"""Mutants without a visible effect, each with the reason: the list `equivalent.txt`, by file."""

from __future__ import annotations

from pathlib import Path

__all__ = ["read_equivalent"]

_FILE = Path(__file__).with_name("equivalent.txt")


def read_equivalent() -> dict[str, str]:
    """Return the reason for each mutant of the list, by its key. Lines with `#` are the reason for those below."""
    reasons: dict[str, str] = {}
    reason: list[str] = []
    is_below = False
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = [*([] if is_below else reason), line.removeprefix("#").strip()]
            is_below = False
        elif line.strip():
            reasons[line.strip()] = " ".join(reason)
            is_below = True
    return reasons
