"""Decisions as a tree: tests in order, and at each end a verdict with the name that the proxy will log.

A tree is as deep as a request has stages to pass, however many rules there are: a test that comes after others stands
in the same list, never inside of their `otherwise`. Envoy reads no configuration that is nested beyond a fixed depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from eastgate.policy import (
    ALWAYS,
    NEVER,
    Origin,
    PolicyRef,
    Predicate,
    Refusal,
    Rule,
)

__all__ = [
    "NOT_ENFORCED",
    "NO_AUDIT",
    "Choice",
    "Node",
    "Verdict",
    "choice",
    "name_of",
    "verdicts",
]

OPEN = "open"  # nothing was in the way
NOT_ENFORCED = "cannot-be-enforced"  # the port is closed, because its policies are not in force


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
    """Build one flat list of tests in order, without those that are certain."""
    kept: list[tuple[Predicate, Node]] = []
    for when, node in tests:
        if when == ALWAYS:
            otherwise = node
            break
        if when != NEVER:
            kept.append((when, node))
    if isinstance(otherwise, Choice):
        kept += otherwise.tests
        otherwise = otherwise.otherwise
    return Choice(tuple(kept), otherwise) if kept else otherwise


def verdicts(node: Node) -> Iterator[Verdict]:
    """Every end."""
    if isinstance(node, Verdict):
        yield node
        return
    for _, inner in node.tests:
        yield from verdicts(inner)
    yield from verdicts(node.otherwise)
