"""A change in a form that a test can assert in one line."""

from __future__ import annotations

from eastgate.cluster import Change


def difference(change: Change) -> dict[str, list[str]]:
    """The non-empty parts of a change, without the declared objects."""
    parts = {
        "added": change.added,
        "removed": change.removed,
        "changed": change.changed,
        "services": change.services,
    }
    return {name: sorted(keys) for name, keys in parts.items() if keys}
