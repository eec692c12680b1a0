"""JSON patches (RFC 6902), in which an admission webhook says what it changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eastgate.controller.injection.fields import Plain


def json_patch(before: Plain, after: Plain) -> list[Plain]:
    """Return the operations that make the one of the other. Lists are replaced as a whole."""
    return list(_operations(before, after, ""))


def _operations(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Plain]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
    for key, value in after.items():
        here = f"{path}/{_escaped(key)}"
        if key not in before:
            yield {"op": "add", "path": here, "value": value}
        elif isinstance(before[key], dict) and isinstance(value, dict):
            yield from _operations(before[key], value, here)
        elif before[key] != value:
            yield {"op": "replace", "path": here, "value": value}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
