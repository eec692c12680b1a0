"""The model of a decision table: manifests, settings, and questions with expected answers, or an invariant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from os import PathLike
from pathlib import Path

from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question, QuestionError
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import brief, dataclass
from eastgate.cluster.unread import Handling
from eastgate.dialects import Policy
from eastgate.ir import Origin
from eastgate.reading.manifests import ANYWHERE, Bounds, Node
from eastgate.reports.invariants import Statement
from eastgate.settings import Settings

# Coverage of rules by cases: a case exercises a rule that decided, accepted, passed on or was observed.


Key = tuple[str, int, str]


@dataclass(slots=True)
class Coverage:
    """All rules, and those that some case exercised. Rules on one line of a file are one rule."""

    rules: dict[Key, Origin] = field(default_factory=dict)
    exercised: set[Key] = field(default_factory=set)

    def add_policies(self, policies: Iterable[Policy]) -> None:
        """Add the rules that could be exercised."""
        for policy in policies:
            for origin in policy.origins:
                self.rules.setdefault(_key(origin), origin)

    def add_decision(self, decision: Decision) -> None:
        """Add the rules that a case exercised."""
        for layer in decision.trace(nearest=0).layers:
            for stage in layer.stages:
                deciding = [stage.rule] if stage.rule else []
                self.exercised.update(_key(rule.origin) for rule in [*deciding, *(rule for rule, _ in stage.observed)])

    @property
    def missing(self) -> list[Origin]:
        """Return the rules that no case exercised, in the order of file and line."""
        return [self.rules[key] for key in sorted(self.rules.keys() - self.exercised)]

    @property
    def percent(self) -> float:
        """Return the percentage of rules that were exercised; 100 if there are no rules."""
        covered = len(self.rules) - len(self.missing)
        return 100.0 * covered / len(self.rules) if self.rules else 100.0


def _key(origin: Origin) -> Key:
    span = origin.span
    where = (span.file, span.line) if span else ("", origin.index)
    return *where, str(origin.policy)


@dataclass(frozen=True, slots=True)
class Case:
    """One question. `by` names the policy that must decide, or `none` for a default; None: any policy.

    `status` is the status that the client must get; None: any status. `part_spans` are the spans of the parts of the
    question, by their names in a `Question` and, in a mapping, by key.
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
class BadCase:
    """A case that fails because a text in it is not a valid end of a question."""

    name: str
    error: QuestionError
    cites: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Rejection:
    """A policy that must be rejected as invalid, with this code if one is given."""

    policy: str
    code: str | None
    cites: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Table:
    """One DecisionTest, or one Invariant, which has a statement instead of cases.

    `environments` are the names, or patterns of names, of the environments that it runs in. `environment` is the name
    of the current one.

    `manifests` are paths, or the cluster.

    `problem` is the reason why it cannot be read. A table with a problem never passes.
    """

    name: str
    span: Span
    settings: Settings
    manifests: tuple[str | PathLike[str], ...]
    objects: Node | None
    cases: tuple[Case, ...]
    bad_cases: tuple[BadCase, ...] = ()
    rejects: tuple[Rejection, ...] = ()
    jwks: Mapping[str, Path] = field(default_factory=dict)
    unread: Handling = Handling.BY_KIND
    bounds: Bounds = ANYWHERE  # where the files that it names may be
    problem: str | None = None
    _statement: Statement | None = None
    environments: tuple[str, ...] = ()
    environment: str | None = None

    @property
    def all_cases(self) -> list[Case | BadCase]:
        """Return the cases in the order of the file."""
        return sorted((*self.cases, *self.bad_cases), key=lambda case: (case.span.line, case.span.column))

    def __repr__(self) -> str:
        return brief(self, self.title)

    @property
    def title(self) -> str:
        """Return its name, with its environment."""
        return self.name if self.environment is None else f"{self.name} in {self.environment}"
