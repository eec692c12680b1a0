"""Manifests as their authors wrote them, for `-o json` and `-o yaml`, without the values of Secrets."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from eastgate.basics.regexes import regex
from eastgate.cluster import Operator, Requirement, Selector
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Plain

# Label selectors as `kubectl` takes them on a command line: `app=web,tier in (a, b),!legacy`.


_TERMS = regex(r",(?![^()]*\))")
_SET = regex(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL = regex(r"([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)")
_KEY = regex(r"(!?)\s*([^\s=!()]+)")


class BadSelector(ValueError):  # noqa: N818 - what a person wrote, not what went wrong
    """Error: a text is not a label selector."""


def parse_selector(text: str) -> Selector:
    """Parse a label selector; an empty one selects everything. Raises BadSelector."""
    terms = [term.strip() for term in _TERMS.split(text)] if text.strip() else []
    return Selector.of({}, [_term(term) for term in terms])


def _term(term: str) -> Requirement:
    if match := _SET.fullmatch(term):
        values = frozenset(value.strip() for value in match[3].split(","))
        return Requirement(match[1], Operator.IN if match[2] == "in" else Operator.NOT_IN, values)
    if match := _EQUAL.fullmatch(term):
        operator = Operator.NOT_IN if match[2] == "!=" else Operator.IN
        return Requirement(match[1], operator, frozenset({match[3]}))
    if match := _KEY.fullmatch(term):
        return Requirement(match[2], Operator.DOES_NOT_EXIST if match[1] else Operator.EXISTS)
    raise BadSelector(
        f"`{term}` is not a term of a label selector: write key=value, key!=value, key in (a, b), key or !key"
    )


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
    """Return the age since an API server stored an object, in kubectl's format; `<unknown>` if none did."""
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
