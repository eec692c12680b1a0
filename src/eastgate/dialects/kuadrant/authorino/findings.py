"""The findings of one evaluator on a request. Exactly one of these, and only `Found` speaks for the caller."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from eastgate.records import dataclass

__all__ = ["Broken", "Finding", "Found", "NotKnown", "Refused"]


@dataclass(frozen=True, slots=True)
class Found:
    """It agrees, and this is what it found; `masked` is the same without secrets."""

    value: object = field(repr=False)
    masked: object = field(repr=False)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """It does not agree. The reason is a sentence for a person."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotKnown:
    """It depends on something that nobody knows."""

    what: str

    @property
    def reason(self) -> str:
        """Return the same as a sentence."""
        return f"It depends on {self.what}, which is not known."


@dataclass(frozen=True, slots=True)
class Broken:
    """It could not be evaluated: an expression errs, or somebody who must be asked cannot be."""

    reason: str


Finding: TypeAlias = Found | Refused | NotKnown | Broken
