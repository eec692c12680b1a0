"""Verdicts: small integers that represent outcomes.

A verdict is twice the number of an outcome, plus one if the outcome allows. The rules of a stage have consecutive
numbers, so a stage of any length is stored as one block. An outcome is built only on demand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from eastgate.ir import Outcome, Rule

VerdictNumber = int

PASSED: VerdictNumber = 1  # number 0, allowed: no rule matched
_BY_DEFAULT: tuple[Rule | None, ...] = (None,)


class Verdicts:
    """The outcomes of one program, by number."""

    __slots__ = ("_blocks", "_end", "_starts")

    def __init__(self) -> None:
        self._end = 1
        self._starts = [0]
        self._blocks: list[tuple[bool, str | None, str | None, int | None, Sequence[Rule | None]]] = [
            (True, None, None, None, _BY_DEFAULT)
        ]

    def of_rules(
        self,
        allowed: bool,
        layer: str | None,
        stage: str | None,
        refusal: int | None,
        rules: Sequence[Rule | None] = _BY_DEFAULT,
    ) -> range:
        """Return a verdict for each rule of a stage; without rules, the verdict for no match."""
        start = self._end
        self._end += len(rules)
        self._starts.append(start)
        self._blocks.append((allowed, layer, stage, refusal, rules))
        return range(2 * start + allowed, 2 * self._end + allowed, 2)

    def of(self, outcome: Outcome) -> VerdictNumber:
        """Return the verdict for an outcome. Equal outcomes have the same verdict."""
        head = (outcome.allowed, outcome.layer, outcome.stage, outcome.refusal)
        for start, (*known, rules) in zip(self._starts, self._blocks, strict=True):
            if (*known,) == head:
                for number, rule in enumerate(rules, start):
                    if rule is outcome.rule:  # not equality: an equal rule may be written elsewhere
                        return 2 * number + outcome.allowed
        return self.of_rules(*head, (outcome.rule,))[0]

    def outcome(self, verdict: VerdictNumber) -> Outcome:
        """Return the outcome of a verdict."""
        number = verdict >> 1
        index = bisect_right(self._starts, number) - 1
        allowed, layer, stage, refusal, rules = self._blocks[index]
        return Outcome(allowed, layer, stage, rules[number - self._starts[index]], refusal)
