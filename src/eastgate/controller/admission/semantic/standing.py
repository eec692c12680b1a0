"""The standing of Invariants: whether each holds, as things are now.

Two changes that are each fine may break an Invariant together, and pods come and go without being judged. So what holds
is found out again after changes; an Invariant that a change cannot have touched keeps the standing that it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eastgate.authority.authority import Authority
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.ir import PolicyRef
from eastgate.reports.invariants.objects import InvariantObject
from eastgate.reports.invariants.proving import prove
from eastgate.reports.invariants.report import headline
from eastgate.reports.invariants.standings import StatementFinding, StatementStanding

HOLDS = "Holds"
"""The type of the condition of an Invariant."""

PROVEN = "Proven"
"""The reason of the condition of an Invariant that holds."""

_CONDITIONS = {
    StatementStanding.HOLDS: ("True", PROVEN, "no request breaks it"),
    StatementStanding.BROKEN: ("False", "Broken", ""),
    StatementStanding.NOT_PROVEN: ("Unknown", "NotProven", ""),
}
_LONGEST_MESSAGE = 32_768


@dataclass(frozen=True, slots=True)
class InvariantStanding:
    """An Invariant, and what is known of it. `changed`: it was not so when it was last evaluated."""

    invariant: InvariantObject
    finding: StatementFinding
    changed: bool = True

    @property
    def message(self) -> str:
        """Return why it does not hold, in a sentence; that it does, where it does."""
        why = headline(self.invariant.statement, self.finding)
        return printable(why)[:_LONGEST_MESSAGE] if why is not None else _CONDITIONS[StatementStanding.HOLDS][2]


def evaluate(invariants: Iterable[InvariantObject], authority: Authority) -> list[InvariantStanding]:
    """Find out whether each Invariant holds. Workloads are imagined in the authority meanwhile: give it a copy."""
    return [InvariantStanding(invariant, prove(authority, invariant.statement)) for invariant in invariants]


class Standings:
    """The standings of all Invariants, kept for as long as nothing has changed that they may depend on."""

    def __init__(self) -> None:
        self._known: dict[PolicyRef, tuple[int, InvariantStanding]] = {}

    def evaluate(self, invariants: Iterable[InvariantObject], authority: Authority) -> list[InvariantStanding]:
        """Return the standing of each Invariant; what is known of one that is the same in the same state is kept."""
        standings: dict[PolicyRef, tuple[int, InvariantStanding]] = {}
        for invariant in invariants:
            version, known = self._known.get(invariant.ref, (-1, None))
            if known is not None and known.invariant == invariant and version == authority.programs.version:
                standings[invariant.ref] = version, InvariantStanding(invariant, known.finding, changed=False)
                continue
            finding = prove(authority, invariant.statement)
            changed = known is None or known.invariant != invariant or known.finding.standing != finding.standing
            standings[invariant.ref] = -1, InvariantStanding(invariant, finding, changed)
        # Imagining workloads counts as a change, so that the version is that after all of it
        version = authority.programs.version
        self._known = {ref: (version, standing) for ref, (_, standing) in standings.items()}
        return [standing for _, standing in standings.values()]


def condition_of(standing: InvariantStanding) -> Mapping[str, Any]:
    """Return the condition of an Invariant's status, but for the time since when it is so."""
    status, reason, _ = _CONDITIONS[standing.finding.standing]
    generation = standing.invariant.generation
    observed = {} if generation is None else {"observedGeneration": generation}
    return {"type": HOLDS, "status": status, "reason": reason, "message": standing.message, **observed}
