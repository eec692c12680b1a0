"""What came of a request: at one layer, and in all."""

from __future__ import annotations

from dataclasses import dataclass

from eastgate.policy.rules import Rule

__all__ = ["OPEN", "REFUSED_HOST", "REFUSED_SPELLING", "Outcome"]

REFUSED_HOST, REFUSED_SPELLING = "bad-host", "encoded-path"  # stand for a stage where no rule was asked


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one layer says. `rule` is the rule that decided; None where a default did, or nothing was in the way."""

    allowed: bool
    layer: str | None = None
    stage: str | None = None
    rule: Rule | None = None
    refusal: int | None = None

    @property
    def is_unasked(self) -> bool:
        """Whether the request was refused before any rule was asked."""
        return not self.allowed and self.rule is None and self.stage in (None, REFUSED_HOST, REFUSED_SPELLING)

    @property
    def status(self) -> int:
        """What the client sees: 200 where allowed, otherwise the refusal (0 is a closed connection)."""
        return 200 if self.refusal is None else int(self.refusal)


OPEN = Outcome(allowed=True)  # nothing was in the way: no policy, or none that says no
