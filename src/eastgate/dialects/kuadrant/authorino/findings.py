"""The findings of one evaluator on a request: exactly one of these, and only `Found` is in favour of the caller."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from eastgate.basics.records import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    """It agrees. `value` is the value that it found; `masked` is the same without secrets."""

    value: object = field(repr=False)
    masked: object = field(repr=False)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """It does not agree. The reason is a sentence for a person; `for_client`: the client gets it."""

    reason: str
    for_client: bool = False


@dataclass(frozen=True, slots=True)
class NotKnown:
    """It depends on something unknown."""

    what: str

    @property
    def reason(self) -> str:
        return f"It depends on {self.what}, which is not known."


@dataclass(frozen=True, slots=True)
class Broken:
    """It could not be evaluated: an expression errs, or a service is unavailable."""

    reason: str


Finding: TypeAlias = Found | Refused | NotKnown | Broken
