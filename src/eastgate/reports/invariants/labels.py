"""The labellings of an object that some selectors distinguish.

Only the set of selectors that match a labelling matters. Keys are labelled one after the other. Of two partial
labellings that the same selectors can still match, one is enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from eastgate.basics.records import dataclass
from eastgate.ir.labels import Operator, Requirement, Selector

OTHER = "any-other"
"""A value that no selector names."""

Labelling = Mapping[str, str]


class TooManyLabellings(Exception):  # noqa: N818 - it is not an error, it is a third answer
    """Error: there are too many labellings, so there is no answer."""


def terms_of(selector: Selector) -> tuple[Requirement, ...]:
    """Return a selector as requirements. ALL of them must be met."""
    equal = (Requirement(key, Operator.IN, frozenset({value})) for key, value in sorted(selector.match_labels))
    return (*equal, *selector.expressions)


def labellings(
    selectors: Iterable[tuple[Requirement, ...]],
    demanded: Sequence[Requirement],
    most: int,
    fixed: Mapping[str, Sequence[str | None]] | None = None,
) -> list[Labelling]:
    """Return labellings that meet all demands, one for each set of selectors that can match.

    `fixed` are the possible values of some keys (None: no such label). Raises TooManyLabellings.
    """
    told_apart = list(dict.fromkeys(selectors))
    keys = {term.key for terms in (*told_apart, demanded) for term in terms} | set(fixed or ())
    unmet: dict[int, dict[str, str]] = {0: {}}  # selectors that can no longer match, as bits
    for key in sorted(keys):
        unmet = _label(unmet, _Key.of(key, told_apart, demanded, (fixed or {}).get(key)), most)
    return list(unmet.values())


def _label(unmet: dict[int, dict[str, str]], key: _Key, most: int) -> dict[int, dict[str, str]]:
    more: dict[int, dict[str, str]] = {}
    failing = {value: key.failing(value) for value in key.options}
    for before, labels in unmet.items():
        for value, fails in failing.items():
            if before | fails not in more:
                more[before | fails] = labels if value is None else {**labels, key.name: value}
                if len(more) > most:
                    raise TooManyLabellings
    return more


@dataclass(frozen=True, slots=True)
class _Key:
    """A key with its possible values, and the selectors that read it, as bits."""

    name: str
    options: tuple[str | None, ...]
    wanting: int  # selectors with In, which some value meets
    naming: Mapping[str, int]  # selectors with In, by value
    excluding: Mapping[str, int]  # selectors with NotIn, by value
    existing: int
    missing: int

    @classmethod
    def of(
        cls,
        key: str,
        selectors: Sequence[tuple[Requirement, ...]],
        demanded: Sequence[Requirement],
        fixed: Sequence[str | None] | None,
    ) -> _Key:
        naming: dict[str, int] = defaultdict(int)
        excluding: dict[str, int] = defaultdict(int)
        wanting = existing = missing = 0
        demands = [term for term in demanded if term.key == key]
        values = {value for term in demands for value in term.values}
        for number, terms in enumerate(selectors):
            bit = 1 << number
            named: list[frozenset[str]] = []
            for term in terms:
                if term.key != key:
                    continue
                match term.operator:
                    case Operator.IN:
                        named.append(term.values)
                    case Operator.NOT_IN:
                        for value in term.values:
                            excluding[value] |= bit
                        values |= term.values
                    case Operator.EXISTS:
                        existing |= bit
                    case Operator.DOES_NOT_EXIST:
                        missing |= bit
            if named:
                wanting |= bit
                for value in frozenset.intersection(*named):
                    naming[value] |= bit
                values |= named[0]
        options: Iterable[str | None] = [None, OTHER, *sorted(values)] if fixed is None else fixed
        fitting = tuple(
            value for value in options if all(term.matches({} if value is None else {key: value}) for term in demands)
        )
        return cls(key, fitting, wanting, naming, excluding, existing, missing)

    def failing(self, value: str | None) -> int:
        """Return the selectors that do not match this value."""
        if value is None:
            return self.wanting | self.existing
        return (self.wanting & ~self.naming.get(value, 0)) | self.excluding.get(value, 0) | self.missing
