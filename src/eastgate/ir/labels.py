"""Label selectors, exactly as Kubernetes defines them.

All terms of a selector must hold (ALL). A term with several values holds if ANY of them does. A selector without
terms selects everything. `NotIn` and `DoesNotExist` also hold for an object without the key, which is easy to
forget: `tier notin (web)` selects the unlabelled.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from functools import lru_cache

from eastgate.basics.records import dataclass

# Labels that a cluster adds to pods: injectors, by the beginning of the name, and controllers
_INJECTED = (
    "istio.io/",
    "linkerd.io/",
    "security.istio.io/",
    "service.istio.io/",
    "topology.istio.io/",
    "topology.kubernetes.io/",
)
_ADDED = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-name",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "pod-template-generation",
        "pod-template-hash",
        "rollouts-pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
    }
)


def is_added_label(key: str) -> bool:
    """Return whether controllers and injectors add this label to pods, so that no template shows it."""
    return key in _ADDED or key.startswith(_INJECTED)


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as one text, equal for equal labels: the value of an attribute of a request."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


@lru_cache(maxsize=65_536)
def labels_of(text: str) -> Mapping[str, str]:
    """Parse a text of `labels_text`. Keys have no equals sign, and neither keys nor values have commas."""
    return dict(term.split("=", 1) for term in text.split(",") if "=" in term)


class Operator(enum.StrEnum):
    """The four operators of `matchExpressions`, as they are written there."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One entry of `matchExpressions`."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels meets the requirement."""
        match self.operator:
            case Operator.IN:
                return labels.get(self.key) in self.values
            case Operator.NOT_IN:
                return labels.get(self.key) not in self.values
            case Operator.EXISTS:
                return self.key in labels
            case Operator.DOES_NOT_EXIST:
                return self.key not in labels

    @property
    def equality(self) -> tuple[str, str] | None:
        """Return the (key, value) that the requirement demands, if it names exactly one value."""
        if self.operator is Operator.IN and len(self.values) == 1:
            return self.key, next(iter(self.values))
        return None

    def __str__(self) -> str:
        values = ", ".join(sorted(self.values))
        match self.operator:
            case Operator.IN:
                return f"{self.key} in ({values})"
            case Operator.NOT_IN:
                return f"{self.key} notin ({values})"
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector. Selectors with the same terms are equal; the order of terms does not matter."""

    match_labels: frozenset[tuple[str, str]] = frozenset()
    expressions: frozenset[Requirement] = frozenset()

    @classmethod
    def of(cls, match_labels: Mapping[str, str] | None = None, expressions: Iterable[Requirement] = ()) -> Selector:
        """Return the selector of a `matchLabels` mapping and some `matchExpressions`."""
        return cls(frozenset((match_labels or {}).items()), frozenset(expressions))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels is selected."""
        if not self.match_labels <= labels.items():
            return False
        return all(requirement.matches(labels) for requirement in self.expressions)

    def may_match(self, labels: Mapping[str, str]) -> bool:
        """Return whether the selector may select pods with these labels, depending on labels that a cluster adds."""
        unknown = {key for key in self.keys if is_added_label(key) and key not in labels}
        if not unknown:
            return False
        certain = ((key, value) for key, value in self.match_labels if key not in unknown)
        rest = Selector.of(
            dict(certain), (requirement for requirement in self.expressions if requirement.key not in unknown)
        )
        return rest.matches(labels)

    @property
    def only_excludes(self) -> bool:
        """Return whether all terms of the selector exclude labels, and none demands one."""
        negative = (Operator.NOT_IN, Operator.DOES_NOT_EXIST)
        terms = [requirement.operator in negative for requirement in self.expressions]
        return not self.match_labels and bool(terms) and all(terms)

    @property
    def keys(self) -> set[str]:
        """Return the keys of the labels that the selector reads."""
        return {key for key, _ in self.match_labels} | {requirement.key for requirement in self.expressions}

    @property
    def equalities(self) -> tuple[tuple[str, str], ...]:
        """Return all terms that demand one value of one key, `matchLabels` first, sorted."""
        single = {term for term in (r.equality for r in self.expressions) if term is not None}
        return (*sorted(self.match_labels), *sorted(single - self.match_labels))

    @property
    def filters(self) -> tuple[Requirement, ...]:
        """Return the terms that are not in `equalities`."""
        return tuple(r for r in self.expressions if r.equality is None)

    @property
    def anchor(self) -> tuple[str, str] | None:
        """Return one (key, value) that all selected objects have; an index files the selector under it."""
        return next(iter(self.equalities), None)

    def matched_terms(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the terms that hold for these labels, as text."""
        return tuple(text for text, holds in self._judged(labels) if holds)

    def _judged(self, labels: Mapping[str, str]) -> list[tuple[str, bool]]:
        pairs = [(f"{key}: {value}", labels.get(key) == value) for key, value in sorted(self.match_labels)]
        return pairs + [(str(r), r.matches(labels)) for r in self._sorted_expressions()]

    def _sorted_expressions(self) -> list[Requirement]:
        return sorted(self.expressions, key=lambda r: (r.key, r.operator, sorted(r.values)))

    def __str__(self) -> str:
        return "{" + ", ".join(text for text, _ in self._judged({})) + "}"
