"""Did you mean: the nearest of the words that would have been right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean"]


def did_you_mean(written: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that was most likely meant, or None where none is near."""
    words = sorted(allowed)
    folded = {word.casefold(): word for word in reversed(words)}
    exact = folded.get(written.casefold())
    if exact is not None:
        return exact
    near = get_close_matches(written.casefold(), folded, n=1, cutoff=0.75)
    return folded[near[0]] if near else None
