"""Matches of routes as predicates on requests.

How paths and expressions are compared is a parameter, for that differs between data planes. The order in which matches
are tried is that of whoever tries them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.cluster.patterns import matches_pattern
from eastgate.cluster.routes import PathMatch, PathType, RouteMatch, ValueMatch
from eastgate.ir.attributes import METHOD, PATH, Attribute, header, query
from eastgate.ir.matchers import OneOf, Prefix, Value
from eastgate.ir.paths import comparable_path
from eastgate.ir.predicates import ALWAYS, Computed, Is, Or, Predicate, all_of


@dataclass(frozen=True, slots=True)
class MatchPredicates:
    """Predicates for matches, which compare paths and expressions as the proxies of a data plane do.

    `path` is the attribute of a request that is compared with paths, `comparable` turns a path of a manifest into the
    form that is compared, and `spans` tells whether an expression matches all of a text.
    """

    path: Attribute
    comparable: Callable[[str], str]
    spans: Callable[[str, str], bool]

    def requests(self, match: RouteMatch) -> Predicate:
        """Match the requests of a match."""
        return all_of((self.paths(match.path), *self.others(match)))

    # Paths

    def paths(self, match: PathMatch) -> Predicate:
        """Match requests to the paths of a match. The prefix `/` is for every request, whatever its path."""
        whole, part = self.path_parts(match)
        if part is None:
            return whole
        return ALWAYS if part == ALWAYS else Or((whole, part))

    def path_parts(self, match: PathMatch) -> tuple[Predicate, Predicate | None]:
        """Return predicates for the paths of which a match spans all, and for those of which it spans a part."""
        match match.type:
            case PathType.EXACT:
                return self.equal(self.comparable(match.value)), None
            case PathType.REGEX:
                return self.pattern(self.path, match.value), None
            case PathType.PREFIX:
                stem = self.stem(match)
                return self.equal(stem or "/"), self.under(f"{stem}/") if stem else ALWAYS

    def stem(self, prefix: PathMatch) -> str:
        """Return a prefix as it is compared, without the slash at its end."""
        return self.comparable(prefix.value).rstrip("/")

    def equal(self, path: str) -> Predicate:
        """Match requests to this path."""
        return _equal(self.path, path)

    def under(self, prefix: str) -> Predicate:
        """Match requests to paths with this prefix."""
        return Is(self.path, Prefix(prefix))

    # Method, headers and query parameters

    def others(self, match: RouteMatch) -> Iterator[Predicate]:
        """Yield what a match requires of everything but the path."""
        if match.method is not None:
            yield _equal(METHOD, match.method)
        yield from self.headers(match.headers)
        yield from (self.value(query(value.name), value) for value in match.query)

    def headers(self, matches: tuple[ValueMatch, ...]) -> Iterator[Predicate]:
        """Yield what matches of headers require."""
        return (self.value(header(value.name), value) for value in matches)

    def value(self, attribute: Attribute, match: ValueMatch) -> Predicate:
        """Match requests by the value of a header or query parameter."""
        return self.pattern(attribute, match.value) if match.regex else _equal(attribute, match.value)

    def pattern(self, attribute: Attribute, pattern: str) -> Predicate:
        """Match requests in which an expression spans the value of an attribute."""
        spans = self.spans

        def test(values: Mapping[Attribute, Value | None]) -> bool:
            value = values[attribute]
            return isinstance(value, str) and spans(pattern, value)

        return Computed(f"{attribute} matches {pattern}", frozenset({attribute}), test, pattern=(attribute, pattern))


def _equal(attribute: Attribute, value: str) -> Predicate:
    return Is(attribute, OneOf(frozenset({value})))


CANONICAL: Final = MatchPredicates(PATH, comparable_path, matches_pattern)
