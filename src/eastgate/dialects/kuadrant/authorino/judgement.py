"""The result of evaluating a scheme: the answer, and why."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.ir import RulingStep, StepVerdict

DECISIVE = frozenset((StepVerdict.REFUSED, StepVerdict.UNKNOWN, StepVerdict.ERROR))
"""The verdicts of steps that keep a request from being allowed, or may."""


class StepKind(enum.StrEnum):
    """The part of a scheme that a step evaluates, in the order of evaluation."""

    WHEN = "when"
    IDENTITY = "identity"
    METADATA = "metadata"
    AUTHORIZATION = "authorization"
    RESPONSE = "response"


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
    steps: tuple[RulingStep, ...] = ()
    document: Mapping[str, object] = field(default_factory=dict, hash=False)
    """The authorization JSON as it was at the end, masked, without what is unknown."""
    response_headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Headers for the service behind, where it is allowed."""
    passed_on: frozenset[str] = frozenset()
    """Headers of the client that a response passes on with the same value."""
    dynamic_metadata: Mapping[str, object] = field(default_factory=dict, hash=False)
    recognized_by: str | None = None
    """The identity that recognized the caller."""
    follow_up: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """Starts the callbacks of the scheme, where there are some and they can be made. It does not wait for them."""

    @property
    def is_undecided(self) -> bool:
        """Return whether it is a denial, and a step before it met something unknown."""
        return not self.allowed and any(step.verdict is StepVerdict.UNKNOWN for step in self.steps)

    @property
    def reason(self) -> str:
        """Return the reason of the step that decided; of an allowed request, that all steps agreed."""
        if self.allowed:
            return "Every step agreed."
        return next((step.reason for step in reversed(self.steps) if step.verdict in DECISIVE), self.message)
