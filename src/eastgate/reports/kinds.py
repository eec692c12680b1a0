"""The words for kinds of objects, as kubectl accepts them: plurals, any letter case, short names, `kind.group`."""

from __future__ import annotations

from eastgate.basics.records import dataclass
from eastgate.cluster import CONTROLLER_KINDS, ROUTE_KINDS
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.dialects import registered

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
    "inv": "invariant",
    "cinv": "clusterinvariant",
}

# Words for several kinds, and those kinds. `policy` means the kinds that the dialects read.
_SEVERAL: dict[str, frozenset[str]] = {
    "workload": frozenset({"Pod", "ExternalWorkload", *CONTROLLER_KINDS}),
    "route": frozenset(ROUTE_KINDS),
    "backend": frozenset(BACKEND_KINDS),
}


class UnknownKind(ValueError):  # noqa: N818 - what a person wrote, not what went wrong
    """Error: a word is not a known kind. The message lists the known ones."""


def policy_kinds() -> dict[str, str]:
    """Return the kinds of policies, by their names in lower case."""
    return {kind.lower(): kind for kind in registered().policy_kinds}


def _short_names() -> dict[str, str]:
    return _SHORT | {kind.short: kind.kind.lower() for kind in registered().kinds if kind.short is not None}


@dataclass(frozen=True, slots=True)
class Word:
    """A word for a kind: its singular in lower case, and its group if one was given."""

    kind: str
    group: str | None = None


def word_of(text: str) -> Word:
    """Parse a word for a kind."""
    kind, dot, group = text.lower().partition(".")
    return Word(_singular(_short_names().get(kind, kind)), group if dot else None)


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def matches_kind(word: Word, kind: str, group: str) -> bool:
    """Return whether a word matches this kind of this group."""
    if word.group is not None and word.group != group:
        return False
    several = registered().policy_kinds if word.kind == "policy" else _SEVERAL.get(word.kind, ())
    return kind.lower() == word.kind or kind in several
