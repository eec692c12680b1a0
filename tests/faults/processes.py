"""The processes of a mesh."""

from __future__ import annotations

from pathlib import Path

__all__ = ["descendants"]


def descendants(pid: int) -> list[int]:
    """Return all descendants of a process."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, listed.read_text().split()):
            found += [child, *descendants(child)]
    return found
