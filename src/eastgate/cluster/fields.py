"""Read fields of plain data. A null counts as absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Data: TypeAlias = Mapping[str, object]

_NOTHING: dict[str, object] = {}


def mapping(data: Data, key: str) -> Data:
    """Return a mapping; empty if it is absent."""
    value = data.get(key)
    return value if isinstance(value, dict) else _NOTHING


def mappings(data: Data, key: str) -> Sequence[Data]:
    """Return the mappings in a list, whose other items are ignored."""
    value = data.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else ()


def text(data: Data, key: str) -> str | None:
    """Return a string."""
    value = data.get(key)
    return value if isinstance(value, str) else None


def texts(data: Data, key: str) -> tuple[str, ...]:
    """Return the items of a list of strings."""
    value = data.get(key)
    return tuple(value) if isinstance(value, list) else ()


def number(data: Data, key: str) -> int | None:
    """Return a whole number."""
    value = data.get(key)
    return value if isinstance(value, int) else None
