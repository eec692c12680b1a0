"""What is known of a statement, with the request that breaks it."""

from __future__ import annotations

import dataclasses
import enum

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.cluster.question import Question
from eastgate.reports.invariants.future import ImaginedPod


class StatementStanding(enum.StrEnum):
    """What is known of a statement."""

    HOLDS = "holds"
    BROKEN = "broken"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A request that breaks a statement, as the engine decides it.

    `imagined` is its destination, where that does not exist yet; `caller` is the pod that calls, and `account` its
    account, if these do not; `labels` are those of the caller's namespace, if that does not. `lines` show the rule that
    decides, `field` is its path in the policy, and `policies` are those of which one would have to change.
    """

    question: Question
    verdict: str
    reason: str
    policy: str | None
    rule: int | None
    file: str | None
    line: int | None
    lines: tuple[str, ...]
    policies: tuple[str, ...]
    imagined: ImaginedPod | None = None
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    field: str | None = None
    caller: ImaginedPod | None = None
    account: str | None = None

    @property
    def objects(self) -> list[dict[str, object]]:
        """Return what the request needs and does not exist, as objects of the Kubernetes API."""
        pods = (pod for pod in (self.imagined, self.caller) if pod is not None)
        return [manifest for pod in pods for manifest in pod.to_manifests()]


@dataclass(frozen=True, slots=True)
class StatementFinding:
    """The answer to a statement: `why` it is not proven, or the counterexample that breaks it."""

    standing: StatementStanding
    why: str | None = None
    counterexample: Counterexample | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
