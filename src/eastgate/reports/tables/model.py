"""A decision table: manifests, settings, and questions with the answers they must get, or a statement about all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from eastgate.authority.questions import Question
from eastgate.authority.reading import DocumentSource
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import brief, dataclass
from eastgate.cluster.unread import Handling
from eastgate.reading.manifests import ANYWHERE, Bounds, Node
from eastgate.reports.invariants import Statement
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class Case:
    """One question. `by` names the policy that must have decided, or `none` for a default; None: whichever.

    `status` is what the client must see; None: whatever. `part_spans` are the spans of the parts of the question, by
    their names in a `Question` and, of a mapping, by key.
    """

    name: str
    question: Question
    expect: str
    by: str | None
    cites: str | None
    span: Span
    status: int | None = None
    part_spans: Mapping[tuple[str, str], Span] = field(default_factory=dict, compare=False, repr=False)

    def __repr__(self) -> str:
        return brief(self, self.name)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A policy that must be refused as invalid; with this code, where one is given."""

    policy: str
    code: str | None
    cites: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Table:
    """One DecisionTest; or one Invariant, which has a statement instead of cases.

    `problem` says why it cannot be read, where it cannot: then nothing of it can pass.
    """

    name: str
    span: Span
    settings: Settings
    manifests: tuple[Path, ...]
    objects: Node | None
    cases: tuple[Case, ...]
    rejects: tuple[Rejection, ...] = ()
    jwks: Mapping[str, Path] = field(default_factory=dict)
    unread: Handling = Handling.BY_KIND
    bounds: Bounds = ANYWHERE  # of what it names
    problem: str | None = None
    statement: Statement | None = None
    cluster: DocumentSource | None = None  # that it is about, in place of manifests

    def __repr__(self) -> str:
        return brief(self, self.name)
