"""A change, written so that a test can say all of it in a line."""

from __future__ import annotations

from eastgate.cluster import Change


def told(change: Change) -> dict[str, list[str]]:
    """What a change says, without what it does not, and without the objects that were declared."""
    parts = {
        "added": change.added,
        "removed": change.removed,
        "changed": change.changed,
        "services": change.services,
    }
    return {name: sorted(keys) for name, keys in parts.items() if keys}
