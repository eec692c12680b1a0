"""The possible outcomes of a condition if some values are unknown.

If everything is known, exactly one of the three outcomes is possible. An unknown value makes several possible. A
decision may only use a result on which all possible outcomes agree.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.ir import RulingStep, StepVerdict

# The result of evaluating a scheme: the answer with its reasons.


DECISIVE = frozenset((StepVerdict.REFUSED, StepVerdict.UNKNOWN, StepVerdict.ERROR))
"""The verdicts of steps that deny a request, or may deny it."""


class StepKind(enum.StrEnum):
    """The part of a scheme that a step evaluates, in the order of evaluation."""

    WHEN = "when"
    IDENTITY = "identity"
    METADATA = "metadata"
    AUTHORIZATION = "authorization"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer to a request. Every secret in it is replaced by `***`."""

    allowed: bool
    status: int
    """The HTTP status for the client: 200 if the request is allowed."""
    message: str = ""
    """The reason of a denial for the client, in `X-Ext-Auth-Reason`."""
    headers: tuple[tuple[str, str], ...] = ()
    """The headers of a denial."""
    body: str = ""
    """The body of a denial."""
    steps: tuple[RulingStep, ...] = ()
    document: Mapping[str, object] = field(default_factory=dict, hash=False)
    """The final authorization JSON, masked, without unknown values."""
    response_headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Headers for the application, if the request is allowed."""
    passed_on: frozenset[str] = frozenset()
    """Headers of the client that a response passes on unchanged."""
    dynamic_metadata: Mapping[str, object] = field(default_factory=dict, hash=False)
    recognized_by: str | None = None
    """The identity that recognized the caller."""
    follow_up: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """Starts the callbacks of the scheme without waiting for them; None if there are none to send."""

    @property
    def is_undecided(self) -> bool:
        """Return whether it is a denial after a step that depended on an unknown value."""
        return not self.allowed and any(step.verdict is StepVerdict.UNKNOWN for step in self.steps)

    @property
    def reason(self) -> str:
        """Return the reason of the step that decided; for an allowed request, that all steps allowed it."""
        if self.allowed:
            return "Every step agreed."
        return next((step.reason for step in reversed(self.steps) if step.verdict in DECISIVE), self.message)


# The result of one evaluator on a request: exactly one of these. Only `Found` is in favour of the caller.


@dataclass(frozen=True, slots=True)
class Found:
    """The evaluator agrees. `value` is the found value, and `masked` the same value without secrets."""

    value: object = field(repr=False)
    masked: object = field(repr=False)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The evaluator does not agree. The reason is a sentence for a person. `for_client`: the client gets it too."""

    reason: str
    for_client: bool = False


@dataclass(frozen=True, slots=True)
class NotKnown:
    """The result depends on an unknown value."""

    what: str

    @property
    def reason(self) -> str:
        return f"It depends on {self.what}, which is not known."


@dataclass(frozen=True, slots=True)
class Broken:
    """The evaluation failed: an expression errs, or a service is unavailable."""

    reason: str


Finding: TypeAlias = Found | Refused | NotKnown | Broken


class Outcomes(enum.Flag):
    """A set of outcomes."""

    HOLDS = enum.auto()
    FAILS = enum.auto()
    ERRS = enum.auto()


HOLDS = Outcomes.HOLDS
FAILS = Outcomes.FAILS
ERRS = Outcomes.ERRS
EITHER = HOLDS | FAILS
ANYTHING = HOLDS | FAILS | ERRS


def all_hold(parts: Iterable[Outcomes]) -> Outcomes:
    """Combine with ALL, from the first part to the last as in Authorino: the first that fails or errs decides."""
    return _folded(iter(parts), go_on=HOLDS)


def any_holds(parts: Iterable[Outcomes]) -> Outcomes:
    """Combine with ANY, from the first part to the last: the first that holds or errs decides."""
    return _folded(iter(parts), go_on=FAILS)


def _folded(parts: Iterator[Outcomes], go_on: Outcomes) -> Outcomes:
    possible = go_on
    while (possible is go_on or go_on in possible) and (part := next(parts, None)) is not None:
        possible = part if possible is go_on else (possible & ~go_on) | part
    return possible
