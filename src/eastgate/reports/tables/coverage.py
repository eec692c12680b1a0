"""Coverage of rules by cases: a rule is exercised where it decided, accepted, passed or was observed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from eastgate.authority.decisions import Decision
from eastgate.basics.records import dataclass
from eastgate.dialects import Policy
from eastgate.ir import Origin

Key = tuple[str, int, str]


@dataclass(slots=True)
class Coverage:
    """All rules that were there, and those that some case exercised. The same line of a file is one rule."""

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
        """Return the percentage of rules that were exercised; 100 where there are none."""
        covered = len(self.rules) - len(self.missing)
        return 100.0 * covered / len(self.rules) if self.rules else 100.0


def _key(origin: Origin) -> Key:
    span = origin.span
    where = (span.file, span.line) if span else ("", origin.index)
    return *where, str(origin.policy)
