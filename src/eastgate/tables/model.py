"""A decision table: manifests, settings, and questions with the answers they must get."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eastgate.places import Span
from eastgate.questions import Question
from eastgate.settings import Settings
from eastgate.sources.node import Node

__all__ = ["Case", "Rejection", "Table"]


@dataclass(frozen=True, slots=True)
class Case:
    """One question. `by` names the policy that must have decided, or `none` for a default; None: whichever."""

    name: str
    question: Question
    expect: str
    by: str | None
    cites: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Rejection:
    """A policy that must be refused as invalid; with this code, where one is given."""

    policy: str
    code: str | None
    cites: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Table:
    """One DecisionTest."""

    name: str
    span: Span
    settings: Settings
    manifests: tuple[Path, ...]
    objects: Node | None
    cases: tuple[Case, ...]
    rejects: tuple[Rejection, ...] = ()
