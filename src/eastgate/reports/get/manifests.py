"""Manifests as their authors wrote them, for `-o json` and `-o yaml`, without the values of Secrets."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Plain

UNKNOWN_AGE = "<unknown>"


def manifest(document: Document) -> dict[str, Plain]:
    """Return the object as its author wrote it, without the values of a Secret."""
    plain = document.node.plain() if document.node is not None else document.data
    shown: dict[str, Plain] = dict(plain) if isinstance(plain, dict) else {}
    if document.kind == "Secret":
        for key in ("data", "stringData"):
            values = shown.get(key)
            if isinstance(values, dict):
                shown[key] = dict.fromkeys(values, "***")
    return shown


def as_list(documents: Iterable[Document]) -> dict[str, object]:
    """Return a Kubernetes List, with its keys in kubectl's order."""
    return {
        "apiVersion": "v1",
        "items": [manifest(document) for document in documents],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }


def labels_of(document: Document) -> dict[str, str]:
    labels = _metadata(document).get("labels")
    return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}


def _metadata(document: Document) -> dict[str, Plain]:
    if document.node is not None:
        node = document.node.get("metadata")
        plain = node.plain() if node is not None else None
    else:
        plain = (document.data or {}).get("metadata")
    return plain if isinstance(plain, dict) else {}


def age_of(document: Document | None, now: datetime | None = None) -> str:
    """Return the age since an API server stored it, in kubectl's format; `<unknown>` where none has."""
    timestamp = _metadata(document).get("creationTimestamp") if document is not None else None
    try:
        created = datetime.fromisoformat(str(timestamp).replace("Z", "+00:00"))
    except ValueError:
        return UNKNOWN_AGE
    if created.tzinfo is None:
        return UNKNOWN_AGE
    return _duration(int(((now or datetime.now(UTC)) - created).total_seconds()))


def _duration(seconds: int) -> str:
    """Format a duration as kubectl does: two units while the first is small, then one."""
    minutes, hours, days, years = seconds // 60, seconds // 3600, seconds // 86400, seconds // (86400 * 365)
    steps: tuple[tuple[bool, str], ...] = (
        (seconds < 0, UNKNOWN_AGE),
        (seconds < 120, f"{seconds}s"),
        (minutes < 10, f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"),
        (minutes < 180, f"{minutes}m"),
        (hours < 8, f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"),
        (hours < 48, f"{hours}h"),
        (days < 8, f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"),
        (days < 730, f"{days}d"),
        (years < 8, f"{years}y{days % 365}d" if days % 365 else f"{years}y"),
    )
    return next((text for fits, text in steps if fits), f"{years}y")
