"""The hooks through which general checks read the policies of every dialect.

Hooks have no default: a dialect states explicitly which parts it does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Generic, TypeVar

from eastgate.basics.diagnostics import Code
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Target
from eastgate.dialects.base import Policy
from eastgate.dialects.linting.context import Check
from eastgate.ir import Attachment, Layer, PolicyRef, Predicate, Rule
from eastgate.ir.attributes import IDENTITY, MESH_NAME, Attribute
from eastgate.settings import Settings

P = TypeVar("P", bound=Policy)


@dataclass(frozen=True, slots=True)
class Naming:
    """A condition that may name callers, and the span of their names. `rule` is the span of the whole rule."""

    when: Predicate
    span: Span | None
    rule: Span | None = None


@dataclass(frozen=True, slots=True)
class NamedAccount:
    """A service account that a policy names, of any trust domain. `*`: all accounts of the namespace."""

    namespace: str
    account: str
    span: Span


@dataclass(frozen=True, slots=True)
class EmptyList:
    """The finding for a rule that contains an empty list and can still match."""

    code: Code
    outcome: str
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The content of one policy for general checks.

    `rules` are those with one meaning at all their points. `naming` are the conditions that may name callers, and
    `accounts` the named callers that no condition contains. `targets` must exist; they are written in the field
    `target_field` of the spec. The dialect leaves them empty if it has its own check. `allows`: the rules allow, and do
    not deny or ask. `empty_list` is None if a rule with an empty list is like any other.
    """

    rules: tuple[Rule, ...]
    naming: tuple[Naming, ...]
    targets: tuple[Target, ...]
    target_field: str
    allows: bool
    empty_list: EmptyList | None
    accounts: tuple[NamedAccount, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadingChoice(Generic[P]):
    """A setting that chooses one of two readings of a specification.

    `other` returns the settings of the other reading. `shapes` returns whether the setting affects the layers and
    policies of a point. `concerns` returns whether the finding must name a policy there.
    """

    setting: str
    code: Code
    other: Callable[[Settings], Settings]
    shapes: Callable[[Sequence[Layer], Sequence[Attachment[P]]], bool]
    concerns: Callable[[Attachment[P]], bool]


@dataclass(frozen=True, slots=True)
class Fallback:
    """The finding about a policy that is superfluous because an object allows its callers anyway. `message` gets the
    names of the fallbacks and of the policy.
    """

    code: Code
    message: Callable[[str, PolicyRef | None], str]
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Linting(Generic[P]):
    """The parts of a dialect that lint needs.

    `statements` returns the content of a policy. `blames` returns whether a finding about a layer that allows no caller
    must name a policy (of any dialect, or unreadable). `readings` are settings that choose a reading. `fallback` is for
    dialects whose objects allow callers by themselves. `checks` are the dialect's own checks, and `codes` the modules
    with their codes.
    """

    statements: Callable[[P], Statements]
    blames: Callable[[Policy, Layer], bool]
    readings: tuple[ReadingChoice[P], ...]
    fallback: Fallback | None
    checks: tuple[Check, ...]
    codes: tuple[ModuleType, ...]


def is_shaped(layers: Iterable[Layer], setting: str) -> bool:
    """Return whether a setting chose the reading of any chain."""
    return any(reading.setting == setting for layer in layers for chain in layer.chains for reading in chain.readings)


def naming_of(rules: Iterable[Rule]) -> tuple[Naming, ...]:
    """Return the conditions of rules, each with its text about callers."""
    return tuple(Naming(rule.when, rule.origin.part(_about_callers(rule)), rule.origin.span) for rule in rules)


def _about_callers(rule: Rule) -> Attribute:
    return IDENTITY if any(attribute == IDENTITY for attribute, _ in rule.origin.parts) else MESH_NAME
