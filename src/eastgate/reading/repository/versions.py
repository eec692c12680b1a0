"""Versions of charts, and the constraints on them in `Chart.yaml`, as helm reads both."""

from __future__ import annotations

from typing import Final, TypeAlias

from eastgate.basics.regexes import regex

_VERSION = regex(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z.-]{1,200}))?(?:\+[0-9A-Za-z.-]{1,200})?")
_TERM = regex(
    r"(=|==|!=|>|<|>=|=>|<=|=<|~|~>|\^)?\s*v?([\dxX*]{1,9}(?:\.[\dxX*]{1,9}){0,2})(?:-([0-9A-Za-z.-]+))?(?:\+\S+)?"
)
_SPACE = regex(r"(?<=[=<>~^])\s+")
_RANGE = regex(r"(\S+)\s+-\s+(\S+)")
_WILD: Final = ("x", "X", "*")

VersionKey: TypeAlias = tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]


def version_key(version: str) -> VersionKey | None:
    """Return a sort key for SemVer versions; None for a text that is not a version."""
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        return None
    major, minor, patch = (int(match[group] or 0) for group in (1, 2, 3))
    return (major, minor, patch), not match[4], _identifiers(match[4])


def satisfies(version: str, constraint: str) -> bool:
    """Return whether a version meets a constraint. Invalid versions and constraints never match."""
    key = version_key(version)
    return key is not None and any(_meets_all(key, part) for part in constraint.split("||"))


def _meets_all(key: VersionKey, terms: str) -> bool:
    terms = _RANGE.sub(r">=\1 <=\2", terms.strip())
    words = [word for word in _SPACE.sub("", terms).replace(",", " ").split(" ") if word]
    return bool(words) and all(_meets(key, word) for word in words)


def _meets(key: VersionKey, term: str) -> bool:
    match = _TERM.fullmatch(term)
    if match is None:
        return False
    operator, written, prerelease = match[1] or "", match[2].split("."), match[3]
    if not key[1] and not prerelease:
        return False  # a prerelease matches only if the constraint names one
    count = next((index for index, part in enumerate(written) if part in _WILD), len(written))
    parts = [int(part) for part in written[:count] if part.isdecimal()]
    if len(parts) != count:
        return False
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    low: VersionKey = (major, minor, patch), not prerelease, _identifiers(prerelease)
    behind = _next((major, minor, patch), count)  # the first version after a partial one such as 1.2
    match operator:
        case "!=":
            return not _is_between(key, low, behind)
        case ">":
            return key > low if count == 3 else key[0] >= behind
        case ">=" | "=>":
            return key >= low
        case "<":
            return key < low
        case "<=" | "=<":
            return key <= low if count == 3 else key[0] < behind
        case "^":
            return _is_between(key, low, _next((major, minor, patch), _leading(parts)))
        case "~" | "~>":
            return _is_between(key, low, _next((major, minor, patch), min(count, 2)))
    return key == low if count == 3 else _is_between(key, low, behind)


def _is_between(key: VersionKey, low: VersionKey, behind: tuple[int, int, int]) -> bool:
    return low <= key and key[0] < behind


def _leading(parts: list[int]) -> int:
    """Return the number of leading parts that `^` keeps: up to the first one that is not 0."""
    return next((index + 1 for index, part in enumerate(parts) if part), len(parts))


def _next(version: tuple[int, int, int], count: int) -> tuple[int, int, int]:
    """Return the first version with other leading parts."""
    major, minor, patch = version
    match count:
        case 0:
            return (1 << 40, 0, 0)
        case 1:
            return (major + 1, 0, 0)
        case 2:
            return (major, minor + 1, 0)
    return (major, minor, patch + 1)


def _identifiers(prerelease: str | None) -> tuple[tuple[bool, int, str], ...]:
    """Return a sort key for prereleases: numbers first, by their value."""
    parts = prerelease.split(".") if prerelease else ()
    return tuple((not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts)
