"""A cache with a limit on the total size of its values."""

from __future__ import annotations

from functools import partial

from eastgate.basics.caching import SizedCache


def _fill(cache: SizedCache[str, str], *keys: str) -> list[str]:
    """Get values of the length of their keys; return the keys whose values were created."""
    made: list[str] = []

    def make(key: str) -> tuple[str, int]:
        made.append(key)
        return key.upper(), len(key)

    assert [cache.get(key, partial(make, key)) for key in keys] == [key.upper() for key in keys]
    return made


def test_values_are_made_once_for_as_long_as_there_is_room() -> None:
    cache = SizedCache[str, str](6)
    assert _fill(cache, "aa", "bb", "aa", "cc", "bb") == ["aa", "bb", "cc"]


def test_the_value_that_was_not_used_for_longest_goes_first() -> None:
    cache = SizedCache[str, str](4)
    assert _fill(cache, "aa", "bb", "aa", "cc", "aa", "bb") == ["aa", "bb", "cc", "bb"]


def test_a_value_that_is_larger_than_all_room_is_the_only_one() -> None:
    cache = SizedCache[str, str](4)
    assert _fill(cache, "aa", "bbbbbb", "bbbbbb", "aa", "bbbbbb") == ["aa", "bbbbbb", "aa", "bbbbbb"]


def test_a_cleared_cache_has_all_of_its_room() -> None:
    cache = SizedCache[str, str](4)
    _fill(cache, "aa", "bb")
    cache.clear()
    assert _fill(cache, "aa", "bb", "aa", "bb") == ["aa", "bb"]
