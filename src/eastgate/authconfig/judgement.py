"""What comes of evaluating a scheme: the answer, and why."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from eastgate.places import Span

__all__ = ["Judgement", "Seen", "Step", "StepKind", "Verdict"]


class StepKind(enum.StrEnum):
    """The part of a scheme that a step evaluates, in the order in which they are."""

    WHEN = "when"
    IDENTITY = "identity"
    METADATA = "metadata"
    AUTHORIZATION = "authorization"
    RESPONSE = "response"


class Verdict(enum.StrEnum):
    """How a step came out."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Seen:
    """What one pattern saw: `saw` is what its selector found, masked; None where nothing is there or it is unknown."""

    expression: str
    saw: str | None
    verdict: Verdict
    reason: str = ""
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was evaluated. `reason` is a sentence; `seen` are the patterns that were looked at, in order."""

    kind: StepKind
    name: str
    verdict: Verdict
    reason: str
    seen: tuple[Seen, ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer to a request. No field holds a secret: where one would be, there is `***`."""

    allowed: bool
    status: int
    """The HTTP status for the client: 200 where it is allowed."""
    message: str = ""
    """Why not, as the client may read it (it is in `X-Ext-Auth-Reason`)."""
    headers: tuple[tuple[str, str], ...] = ()
    """The headers of a denial."""
    body: str = ""
    """The body of a denial."""
    steps: tuple[Step, ...] = ()
    document: Mapping[str, object] = field(default_factory=dict, hash=False)
    """The authorization JSON as it was at the end, masked, without what is unknown."""
    response_headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What the service behind gets, where it is allowed."""
    dynamic_metadata: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def is_undecided(self) -> bool:
        """Return whether it is a denial on the way to which something was not known."""
        return not self.allowed and any(step.verdict is Verdict.UNKNOWN for step in self.steps)

    @property
    def reason(self) -> str:
        """Return the sentence of the step that decided, or that nothing was in the way."""
        decisive = (Verdict.REFUSED, Verdict.UNKNOWN, Verdict.ERROR)
        if self.allowed:
            return "Every step agreed."
        return next((step.reason for step in reversed(self.steps) if step.verdict in decisive), self.message)
