"""Read the fields of plain data that fits its shape. A null is as good as absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Data: TypeAlias = Mapping[str, object]

_NOTHING: dict[str, object] = {}


def mapping(data: Data, key: str) -> Data:
    """Return a mapping, empty where it is absent."""
    value = data.get(key)
    return value if isinstance(value, dict) else _NOTHING


def entries(data: Data, key: str) -> Sequence[Data]:
    """Return the items of a list of mappings."""
    value = data.get(key)
    return value if isinstance(value, list) else ()


def mappings(data: Data, key: str) -> Sequence[Data]:
    """Return the mappings of a list whose items need not fit their shape."""
    return [item for item in entries(data, key) if isinstance(item, dict)]


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


def strings(data: Data, key: str) -> dict[str, str]:
    """Return a mapping of strings to strings, as a copy."""
    value = data.get(key)
    return dict(value) if isinstance(value, dict) else {}
