"""A change of one object, and the judgement of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import thread_time
from typing import Any

from eastgate.authority.authority import Authority, programs_of
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.ir import PolicyRef
from eastgate.reports.invariants.objects import InvariantObject, StatementFinding, StatementStanding
from eastgate.reports.invariants.proving import prove
from eastgate.reports.invariants.report import headline

# The standing of Invariants: whether each holds now.
#
# Two changes that are allowed separately may break an Invariant together, and pods come and go without a judgement. So
# Invariants are evaluated again after changes. An Invariant that a change cannot affect keeps its standing.


HOLDS = "Holds"
"""The type of the condition of an Invariant."""

PROVEN = "Proven"
"""The reason of the condition of an Invariant that holds."""

_CONDITIONS = {
    StatementStanding.HOLDS: ("True", PROVEN, "no request breaks it"),
    StatementStanding.BROKEN: ("False", "Broken", ""),
    StatementStanding.NOT_PROVEN: ("Unknown", "NotProven", ""),
}
_MAX_MESSAGE_CHARS = 32_768


@dataclass(frozen=True, slots=True)
class InvariantStanding:
    """An Invariant and the result of its evaluation. `changed`: the result differs from the last one."""

    invariant: InvariantObject
    finding: StatementFinding
    changed: bool = True

    @property
    def message(self) -> str:
        """Return a sentence that says why the Invariant does not hold, or that it holds."""
        why = headline(self.invariant.statement, self.finding)
        return printable(why)[:_MAX_MESSAGE_CHARS] if why is not None else _CONDITIONS[StatementStanding.HOLDS][2]


class Standings:
    """The standings of all Invariants, cached until something changes on which they may depend."""

    def __init__(self) -> None:
        self._known: dict[PolicyRef, tuple[int, InvariantStanding]] = {}

    def evaluate(self, invariants: Iterable[InvariantObject], authority: Authority) -> list[InvariantStanding]:
        """Return the standing of each Invariant, from the cache if the Invariant and the state are the same."""
        standings: dict[PolicyRef, tuple[int, InvariantStanding]] = {}
        for invariant in invariants:
            version, known = self._known.get(invariant.ref, (-1, None))
            if known is not None and known.invariant == invariant and version == programs_of(authority).version:
                standings[invariant.ref] = version, InvariantStanding(invariant, known.finding, changed=False)
                continue
            finding = prove(authority, invariant.statement)
            changed = known is None or known.invariant != invariant or known.finding.standing != finding.standing
            standings[invariant.ref] = -1, InvariantStanding(invariant, finding, changed)
        # The evaluation may add imagined workloads, which changes the version. So read the version after it.
        version = programs_of(authority).version
        self._known = {ref: (version, standing) for ref, (_, standing) in standings.items()}
        return [standing for _, standing in standings.values()]


def condition_of(standing: InvariantStanding) -> Mapping[str, Any]:
    """Return the condition of an Invariant's status, without its transition time."""
    status, reason, _ = _CONDITIONS[standing.finding.standing]
    generation = standing.invariant.generation
    observed = {} if generation is None else {"observedGeneration": generation}
    return {"type": HOLDS, "status": status, "reason": reason, "message": standing.message, **observed}


# The time that a judgement may take.


class Deadline:
    """A limit of the work for a judgement.

    It counts processor seconds of the thread from now on: a busy machine must not make a judgement less complete.
    """

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else thread_time() + seconds

    def is_past(self) -> bool:
        """Return whether the thread has used the time up."""
        return self._end is not None and thread_time() > self._end


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """The change of one object: `put` is its plain data as the API server has it, or None if it is removed.

    `old` is the object before the change, if known.
    """

    ref: PolicyRef
    put: Mapping[str, Any] | None = None
    old: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls, document: Mapping[str, Any], *, removed: bool = False, old: Mapping[str, Any] | None = None
    ) -> ObjectChange:
        """Return the change that puts an object, or removes it."""
        metadata = document.get("metadata")
        named = metadata if isinstance(metadata, Mapping) else {}
        group, _, _ = str(document.get("apiVersion", "")).rpartition("/")
        namespace = named.get("namespace")
        ref = PolicyRef(
            str(document.get("kind")),
            str(namespace) if namespace is not None else None,
            str(named.get("name", "")),
            group,
        )
        return cls(ref, None if removed else document, document if removed else old)


@dataclass(frozen=True, slots=True)
class ChangeJudgement:
    """The judgement of a change: warnings, openings first, and the reasons for a refusal, if any.

    `determined`: the warnings name everything that the change opens. If it is False, a warning names the unknown part.
    """

    warnings: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    determined: bool = True

    @property
    def allowed(self) -> bool:
        """Return whether the change has no refusal."""
        return not self.refusals
