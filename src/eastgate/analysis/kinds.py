"""The words for kinds of things, as kubectl takes them: plurals, any letter case, short names, `kind.group`."""

from __future__ import annotations

from dataclasses import dataclass

from eastgate.dialects import DIALECTS
from eastgate.dialects.short_names import SHORT_NAMES
from eastgate.world import CONTROLLER_KINDS, ROUTE_KINDS

__all__ = ["GROUPS", "POLICY_KINDS", "Word", "matches_kind", "word_of"]

_SHORT = {
    "po": "pod",
    "wl": "workload",
    "svc": "service",
    "gw": "gateway",
    "gtw": "gateway",
    "be": "backend",
    "ns": "namespace",
    "pol": "policy",
    "sa": "serviceaccount",
    "deploy": "deployment",
    "sts": "statefulset",
    "ds": "daemonset",
    "rs": "replicaset",
    "cj": "cronjob",
    **{short: kind.lower() for kind, short in SHORT_NAMES.items()},
}
POLICY_KINDS = {kind.kind.lower(): kind.kind for dialect in DIALECTS for kind in dialect.kinds}

# Words that stand for several kinds, and those kinds.
GROUPS: dict[str, frozenset[str]] = {
    "policy": frozenset(POLICY_KINDS.values()),
    "workload": frozenset({"Pod", "ExternalWorkload", *CONTROLLER_KINDS}),
    "route": frozenset(ROUTE_KINDS),
    "backend": frozenset({"Backend", "XBackend"}),
}


@dataclass(frozen=True, slots=True)
class Word:
    """A word for a kind: its singular in lower case, and the group if one was given."""

    kind: str
    group: str | None = None


def word_of(written: str) -> Word:
    """What a word means."""
    kind, dot, group = written.lower().partition(".")
    return Word(_singular(_SHORT.get(kind, kind)), group if dot else None)


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def matches_kind(word: Word, kind: str, group: str) -> bool:
    """Whether a word means this kind of this group."""
    if word.group is not None and word.group != group:
        return False
    return kind.lower() == word.kind or kind in GROUPS.get(word.kind, ())
