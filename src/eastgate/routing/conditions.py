"""What a match asks of one attribute of a request, where the attribute may be known, assumed or neither.

Of an attribute that is not known there are endlessly many values, but the conditions of a gateway tell only a few kinds
apart. A kind is a value that some condition names, or a `Region`: all values that none names, under one prefix or
under none. Only regular expressions may tell the values of a region apart; each is then assumed to match or not, on
its own, which may be more than can happen but never less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from eastgate.policy import Known
from eastgate.policy.attributes import Attribute
from eastgate.world import matches_pattern

__all__ = ["Assumed", "Condition", "Equals", "Matches", "Open", "Region", "Under", "attribute_of", "judge", "kinds"]


@dataclass(frozen=True, slots=True)
class Region:
    """The values that no condition names and that are under this prefix and no longer one; None: under none."""

    prefix: str | None = None


Kind: TypeAlias = Known | Region


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
Open: TypeAlias = (
    Attribute | Matches
)  # what is to be assumed next: of which kind an attribute is, or whether it matches
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
        return bool(condition.holds(known[attribute]))
    if attribute not in assumed:
        return attribute
    held = condition.holds(assumed[attribute])
    if held is not None:
        return held
    assert isinstance(condition, Matches)  # noqa: S101 - nothing else is left open by a region
    return bool(assumed[condition]) if condition in assumed else condition


def kinds(undecided: Open, conditions: Iterable[Condition]) -> list[Kind | bool]:
    """All that can be assumed of something, as far as these conditions can tell."""
    if isinstance(undecided, Matches):
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
    return undecided.attribute if isinstance(undecided, Matches) else undecided
