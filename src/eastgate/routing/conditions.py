"""What a match asks of one attribute of a request, where the attribute may be known, assumed or neither.

Of an attribute that is not known there are endlessly many values, but the conditions of a gateway tell only a few kinds
apart. A kind is a value that some condition names, or a `Region`: all values that none names, under one prefix or
under none. Only regular expressions may tell the values of a region apart; each is then assumed to match or not, on
its own, which may be more than can happen but never less. A header or query parameter may be there several times, with
a value for each condition: there every condition is assumed to hold or not, on its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from eastgate.policy import Known, Value, values_of
from eastgate.policy.attributes import Attribute
from eastgate.world import matches_pattern

__all__ = ["Assumed", "Condition", "Equals", "Matches", "Open", "Region", "Under", "attribute_of", "judge", "kinds"]


@dataclass(frozen=True, slots=True)
class Region:
    """The values that no condition names and that are under this prefix and no longer one; None: under none."""

    prefix: str | None = None


Kind: TypeAlias = Value | Region


@dataclass(frozen=True, slots=True)
class Equals:
    """The attribute has this value."""

    attribute: Attribute
    value: str

    def holds(self, value: Kind) -> bool:
        """Whether it holds for a value, or for all values of a region."""
        return value == self.value


@dataclass(frozen=True, slots=True)
class Under:
    """The attribute is this path or one below it."""

    attribute: Attribute
    prefix: str

    def holds(self, value: Kind) -> bool:
        """Whether it holds for a value, or for all values of a region."""
        path = value.prefix if isinstance(value, Region) else value
        return isinstance(path, str) and (path == self.prefix or path.startswith(f"{self.prefix}/"))


@dataclass(frozen=True, slots=True)
class Matches:
    """All of the attribute matches this regular expression."""

    attribute: Attribute
    pattern: str

    def holds(self, value: Kind) -> bool | None:
        """Whether it holds for a value; None for a region, some of which may match."""
        if isinstance(value, Region):
            return None
        return isinstance(value, str) and matches_pattern(self.pattern, value)


Condition: TypeAlias = Equals | Under | Matches
Open: TypeAlias = Attribute | Condition  # what is to be assumed next: the kind of an attribute, or whether it matches
Assumed: TypeAlias = Mapping[Open, Kind | bool]


def judge(conditions: Iterable[Condition], known: Mapping[Attribute, Known], assumed: Assumed) -> bool | Open:
    """Whether ALL conditions hold, or what it depends on."""
    undecided: Open | None = None
    for condition in conditions:
        held = _judge_one(condition, known, assumed)
        if held is False:
            return False
        if held is not True and undecided is None:
            undecided = held
    return True if undecided is None else undecided


def _judge_one(condition: Condition, known: Mapping[Attribute, Known], assumed: Assumed) -> bool | Open:
    attribute = condition.attribute
    if attribute in known:
        return any(condition.holds(value) for value in values_of(known[attribute]))
    if attribute.is_repeatable:
        return _judge_repeatable(condition, assumed)
    if attribute not in assumed:
        return attribute
    held = condition.holds(assumed[attribute])
    if held is not None:
        return held
    assert isinstance(condition, Matches)  # noqa: S101 - nothing else is left open by a region
    return bool(assumed[condition]) if condition in assumed else condition


def _judge_repeatable(condition: Condition, assumed: Assumed) -> bool | Open:
    """Whether a condition is assumed to hold, or what is assumed of others leaves no choice."""
    if condition in assumed:
        return bool(assumed[condition])
    for other, held in assumed.items():
        if isinstance(other, Attribute) or other.attribute != condition.attribute:
            continue
        if held and isinstance(other, Equals) and condition.holds(other.value):
            return True
        if not held and isinstance(condition, Equals) and other.holds(condition.value):
            return False
    return condition


def kinds(undecided: Open, conditions: Iterable[Condition]) -> list[Kind | bool]:
    """All that can be assumed of something, as far as these conditions can tell."""
    if not isinstance(undecided, Attribute):
        return [True, False]
    found: dict[Kind, None] = {Region(): None}
    for condition in conditions:
        if condition.attribute == undecided:
            match condition:
                case Equals(value=value):
                    found[value] = None
                case Under(prefix=prefix):
                    found[Region(prefix)] = None
                case Matches():
                    pass
    return list(found)


def attribute_of(undecided: Open) -> Attribute:
    """The attribute that an assumption is about."""
    return undecided if isinstance(undecided, Attribute) else undecided.attribute
