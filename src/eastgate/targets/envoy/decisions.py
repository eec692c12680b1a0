"""Decisions as a tree: tests in order, and at each end a verdict with the name that the proxy will log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from eastgate.policy import ALWAYS, NEVER, Origin, PolicyRef, Predicate, Refusal, Rule, needs_http

__all__ = [
    "NO_AUDIT",
    "Choice",
    "Node",
    "Verdict",
    "choice",
    "name_of",
    "or_else",
    "then",
    "unread",
    "verdicts",
]

OPEN = "open"  # nothing was in the way
_MOST_NODES = 2_000  # of what is not HTTP on a port that is read as HTTP; past it the port is closed to it


@dataclass(frozen=True, slots=True)
class Verdict:
    """An end. `who` is the rule that decided, or says that none did."""

    allowed: bool
    status: int
    who: str

    @property
    def name(self) -> str:
        """What the proxy logs, and what `why` reads."""
        return f"{self.status}:{self.who}"


NO_AUDIT = Verdict(True, 200, "none")


@dataclass(frozen=True, slots=True)
class Choice:
    """The FIRST test that holds decides, else `otherwise`."""

    tests: tuple[tuple[Predicate, Node], ...]
    otherwise: Node


Node: TypeAlias = "Verdict | Choice"


def name_of(origin: Origin | None, policies: int) -> str:
    """Which rule, as one word; or of how many policies none decided."""
    if origin is None:
        return f"none-of-{policies}"
    if origin.policy is None:
        return "default/" + re.sub(r"[^A-Za-z0-9._/-]+", "-", origin.label).strip("-")
    return f"{policy_name(origin.policy)}#{origin.index}"


@lru_cache(maxsize=65536)
def policy_name(ref: PolicyRef) -> str:
    """Kind.group/namespace/name: kinds of several APIs have the same name."""
    return str(replace(ref, kind=f"{ref.kind}.{ref.group}" if ref.group else ref.kind))


def allow(rule: Rule | None) -> Verdict:
    """It is let in."""
    return Verdict(True, 200, name_of(rule.origin, 0) if rule is not None else OPEN)


def deny(rule: Rule | None, refusal: Refusal, policies: int) -> Verdict:
    """It is kept out."""
    return Verdict(False, int(refusal), name_of(rule.origin if rule is not None else None, policies))


def choice(tests: Iterable[tuple[Predicate, Node]], otherwise: Node) -> Node:
    """Tests in order, without those that are certain."""
    kept: list[tuple[Predicate, Node]] = []
    for when, node in tests:
        if when == ALWAYS:
            otherwise = node
            break
        if when != NEVER:
            kept.append((when, node))
    return Choice(tuple(kept), otherwise) if kept else otherwise


def verdicts(node: Node) -> Iterator[Verdict]:
    """Every end."""
    if isinstance(node, Verdict):
        yield node
        return
    for _, inner in node.tests:
        yield from verdicts(inner)
    yield from verdicts(node.otherwise)


def then(first: Node, second: Node) -> Node:
    """BOTH must allow, in this order; an allow is named after the last that says more than `open`."""
    if isinstance(first, Verdict):
        if not first.allowed:
            return first
        return _named(second, first.who) if first.who != OPEN else second
    return Choice(tuple((when, then(node, second)) for when, node in first.tests), then(first.otherwise, second))


def or_else(first: Node, second: Node) -> Node:
    """What the first says of rules in audit mode; where none of them matches, what the second does."""
    if isinstance(first, Verdict):
        return second if first == NO_AUDIT else first
    return Choice(tuple((when, or_else(node, second)) for when, node in first.tests), or_else(first.otherwise, second))


def _named(node: Node, who: str) -> Node:
    if isinstance(node, Verdict):
        return Verdict(True, 200, who) if node.allowed and node.who == OPEN else node
    return Choice(tuple((when, _named(inner, who)) for when, inner in node.tests), _named(node.otherwise, who))


def unread(node: Node) -> Node:
    """The decision on bytes that are not read as HTTP: whatever HTTP could be in them, ALL of it must be allowed."""
    found = _unread(node, [_MOST_NODES])
    return Verdict(False, int(Refusal.CLOSED), "not-read-as-http") if found is None else _closed(found)


def _unread(node: Node, budget: list[int]) -> Node | None:
    budget[0] -= 1
    if budget[0] < 0:
        return None
    if isinstance(node, Verdict):
        return node
    if not node.tests:
        return _unread(node.otherwise, budget)
    (when, inner), *rest = node.tests
    held = _unread(inner, budget)
    missed = _unread(choice(rest, node.otherwise), budget)
    if held is None or missed is None:
        return None
    if not needs_http(when):
        return choice([(when, held)], missed)
    if isinstance(missed, Verdict) and not missed.allowed:
        return missed
    joined = then(held, missed)
    return joined if sum(1 for _ in verdicts(joined)) <= _MOST_NODES else None


def _closed(node: Node) -> Node:
    """A denial of bytes is a closed connection."""
    if isinstance(node, Verdict):
        return node if node.allowed else replace(node, status=int(Refusal.CLOSED))
    return Choice(tuple((when, _closed(inner)) for when, inner in node.tests), _closed(node.otherwise))
