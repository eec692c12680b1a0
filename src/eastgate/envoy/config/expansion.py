"""Lists of tests with exclusions of many tools, as two levels of rules for one caller produce them.

The first level denies every tool except the many that it allows, and Envoy would compare each of them. So the whole
list is written once for each named tool, with only the remaining tests for that tool, and once for all others. One
look-up then leads to the list of a tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.envoy.plan import Node, ProxyVerdict
from eastgate.ir import ALWAYS, NEVER, And, Computed, Is, Not, OneOf, Or, Predicate, rewrite
from eastgate.ir.attributes import Attribute

_MIN_EXCLUDED_TEXTS = 6  # excluded texts; with fewer, a plain list is as good
_MAX_TESTS = 400_000  # in all lists together

Test: TypeAlias = tuple[Predicate, Node]


@dataclass(frozen=True, slots=True)
class Expansion:
    """The tests for each text of an attribute (the last test always holds), and the tests for all other texts."""

    entries: dict[str, list[Test]]
    others: list[Test]


def compared_texts(predicate: Predicate, attribute: Attribute) -> frozenset[str] | None:
    """Return the only texts of an attribute for which a predicate can hold; None if it does not compare it."""
    for part in predicate.parts if isinstance(predicate, And) else (predicate,):
        if isinstance(part, Is) and part.attribute is attribute and isinstance(part.matcher, OneOf) and not part.joined:
            return frozenset(map(str, part.matcher.values))
    return None


def expand(tests: Sequence[Test], otherwise: Node, attribute: Attribute) -> Expansion | None:
    """Expand a list by the texts of an attribute, if a test excludes many of them; otherwise return None."""
    if not isinstance(otherwise, ProxyVerdict) or not any(_excludes_many(when, attribute) for when, _ in tests):
        return None
    narrowing = _Narrowing(attribute)
    common: list[int] = []
    by_text: dict[str, list[int]] = {}
    for number, (when, inner) in enumerate(tests):
        texts = narrowing.texts_of(when)
        if texts is None and not isinstance(inner, ProxyVerdict):
            return None  # it would be repeated in every list
        if texts is None:
            common.append(number)
            texts = narrowing.mentioned(when)
        for text in texts:
            by_text.setdefault(text, []).append(number)
    if len(by_text) * (len(common) + 2) > _MAX_TESTS:
        return None

    def listed(numbers: Iterable[int], text: str | None) -> Iterator[Test]:
        for number in numbers:
            when = narrowing.residual(tests[number][0], text)
            if when != NEVER:
                yield when, tests[number][1]
            if when == ALWAYS:
                return

    entries = {}
    for text, numbers in sorted(by_text.items()):
        entry = list(listed(sorted({*common, *numbers}), text))
        entries[text] = entry if entry and entry[-1][0] == ALWAYS else [*entry, (ALWAYS, otherwise)]
    return Expansion(entries, list(listed(common, None)))


def _excludes_many(predicate: Predicate, attribute: Attribute) -> bool:
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    return any(isinstance(part, Not) and _count(part.part, attribute) >= _MIN_EXCLUDED_TEXTS for part in parts)


def _count(predicate: Predicate, attribute: Attribute) -> int:
    return sum(len(compared_texts(part, attribute) or ()) for part in _alternatives(predicate))


def _alternatives(predicate: Predicate) -> Iterator[Predicate]:
    """Yield all alternatives of a predicate, including nested ones."""
    if isinstance(predicate, Or):
        for part in predicate.parts:
            yield from _alternatives(part)
    else:
        yield predicate


class _Narrowing:
    """Narrows predicates to one text of an attribute. Long alternatives are sorted by text once."""

    def __init__(self, attribute: Attribute) -> None:
        self._attribute = attribute
        self._sorted: dict[int, tuple[Or, Mapping[str, list[Predicate]], list[Predicate]]] = {}

    def texts_of(self, predicate: Predicate) -> frozenset[str] | None:
        """Return the only texts for which a predicate can hold; None if it can hold for any."""
        if not isinstance(predicate, Or):
            return compared_texts(predicate, self._attribute)
        by_text, rest = self._by_text(predicate)
        return None if rest else frozenset(by_text)

    def mentioned(self, predicate: Predicate) -> frozenset[str]:
        """Return the texts that the result of a predicate depends on."""
        match predicate:
            case Or():
                by_text, rest = self._by_text(predicate)
                return frozenset(by_text).union(*map(self.mentioned, rest))
            case And(parts):
                return frozenset[str]().union(*map(self.mentioned, parts))
            case Not(part):
                return self.mentioned(part)
            case _:
                return compared_texts(predicate, self._attribute) or frozenset()

    def residual(self, predicate: Predicate, text: str | None) -> Predicate:
        """Return the residual of a predicate for a text of the attribute; None: for a text that no test names."""

        def atom(asked: Is | Computed) -> Predicate:
            texts = compared_texts(asked, self._attribute)
            return asked if texts is None else ALWAYS if text in texts else NEVER

        return rewrite(self._narrow(predicate, text), atom)

    def _narrow(self, predicate: Predicate, text: str | None) -> Predicate:
        match predicate:
            case Or():
                by_text, rest = self._by_text(predicate)
                chosen = by_text.get(text, []) if text is not None else []
                return Or((*rest, *chosen))
            case And(parts):
                return And(tuple(self._narrow(part, text) for part in parts))
            case Not(part):
                return Not(self._narrow(part, text))
            case _:
                return predicate

    def _by_text(self, predicate: Or) -> tuple[Mapping[str, list[Predicate]], list[Predicate]]:
        known = self._sorted.get(id(predicate))
        if known is None:
            by_text: dict[str, list[Predicate]] = {}
            rest: dict[Predicate, None] = {}
            for part in _alternatives(predicate):
                texts = compared_texts(part, self._attribute)
                if texts is None:
                    rest[part] = None
                for text in texts or ():
                    by_text.setdefault(text, []).append(part)
            known = self._sorted[id(predicate)] = predicate, by_text, list(rest)
        return known[1], known[2]
