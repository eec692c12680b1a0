"""Lists of tests, split into parts for a look-up and parts for a sequence of tests in Envoy.

Many consecutive tests that compare one attribute with texts become a map from text to the remaining tests. As in the
list, the first test that holds decides: several tests for one text keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.envoy.config.expansion import compared_texts, expand
from eastgate.envoy.plan import Node, ProxyVerdict
from eastgate.envoy.plan.gateway import DESTINATION
from eastgate.ir import ALWAYS, And, Is, OneOf, Or, Predicate, all_of, any_of
from eastgate.ir.attributes import MCP_METHOD, MCP_TOOL, Attribute

_MAPPED = (MCP_TOOL, DESTINATION, MCP_METHOD)  # attributes that are compared by plain texts, the best first
_MIN_TEXTS = 6  # texts; with fewer, a plain list is as good
_MAX_MAPS = 6  # in one list; more would be nested too deep

Test: TypeAlias = tuple[Predicate, Node]


@dataclass(frozen=True, slots=True)
class TestMap:
    """Tests by the text that an attribute is compared with, in order, without that comparison."""

    attribute: Attribute
    entries: dict[str, list[Test]]

    __test__ = False  # otherwise pytest would collect it as a test


Segment: TypeAlias = list[Test] | TestMap


def segments(tests: Sequence[Test], otherwise: Node) -> list[Segment]:
    """Return the parts of a list of tests, in order; at least one. `otherwise` comes after the list."""
    reachable = list(_reachable(tests))
    expansion = expand(reachable, otherwise, MCP_TOOL)
    if expansion is not None:
        others: list[Segment] = [expansion.others] if expansion.others else []
        return [TestMap(MCP_TOOL, expansion.entries), *others]
    parts = [part for test in reachable for part in _split(test)]
    runs: list[tuple[Attribute | None, list[Test]]] = []
    for part in parts:
        attribute = _mapped(part[0])
        if not runs or runs[-1][0] is not attribute:
            runs.append((attribute, []))
        runs[-1][1].append(part)
    joined: list[Segment] = []
    maps = 0
    for attribute, run in runs:
        if attribute is not None and maps < _MAX_MAPS and _texts(run, attribute) >= _MIN_TEXTS:
            maps += 1
            joined.append(_as_map(attribute, run))
        elif joined and isinstance(joined[-1], list):
            joined[-1].extend(run)
        else:
            joined.append(list(run))
    return joined if maps else [list(tests)]


def _reachable(tests: Sequence[Test]) -> Iterator[Test]:
    """Yield the tests without alternatives that an earlier test also has, and so has decided.

    Every rule about the tools of an agent also has the messages that any client needs. Without these, only tools are
    left.
    """
    decided: set[Predicate] = set()
    for when, inner in tests:
        alternatives = when.parts if isinstance(when, Or) else (when,)
        left = [part for part in alternatives if part not in decided]
        decided.update(left)
        if left:
            yield (when if len(left) == len(alternatives) else any_of(left)), inner


def _split(test: Test) -> Iterator[Test]:
    """Yield the alternatives of a test one by one, if only a verdict is repeated."""
    when, inner = test
    if isinstance(when, Or) and isinstance(inner, ProxyVerdict) and any(_mapped(part) for part in when.parts):
        yield from ((part, inner) for part in when.parts)
    else:
        yield test


def _conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, And) else (predicate,)


def _mapped(predicate: Predicate) -> Attribute | None:
    return next((attribute for attribute in _MAPPED if compared_texts(predicate, attribute)), None)


def _texts(run: Sequence[Test], attribute: Attribute) -> int:
    return sum(len(compared_texts(when, attribute) or ()) for when, _ in run)


def _as_map(attribute: Attribute, run: Sequence[Test]) -> TestMap:
    entries: dict[str, list[Test]] = {}
    for when, inner in run:
        rest = _without(when, attribute)
        for text in sorted(compared_texts(when, attribute) or ()):
            known = entries.setdefault(text, [])
            if not known or known[-1][0] != ALWAYS:  # a test that always holds is the last
                known.append((rest, inner))
    return TestMap(attribute, entries)


def _without(predicate: Predicate, attribute: Attribute) -> Predicate:
    """Return the predicate without its first comparison of an attribute with texts."""
    parts = list(_conjuncts(predicate))
    for index, part in enumerate(parts):
        if isinstance(part, Is) and part.attribute is attribute and isinstance(part.matcher, OneOf):
            del parts[index]
            break
    return all_of(parts)
