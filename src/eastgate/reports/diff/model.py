"""The result of a comparison: its changes, and the JSON of `eastgate diff`."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import brief, dataclass
from eastgate.reach.comparison import DoubtReason
from eastgate.reach.endings import Spelling

SPELLINGS = {
    Spelling.PLAIN: "plain",
    Spelling.ENCODED_SLASH: "encodedSlash",
    Spelling.RESPELLED: "respelledPath",
    Spelling.BAD_HOST: "badHost",
}


class FailOn(enum.StrEnum):
    """The changes for which a comparison fails: the values of `--fail-on`."""

    WIDER = "wider"
    NARROWER = "narrower"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class ChangedPorts:
    """Ports of a change. `others`: also ports that no object names; `every`: all ports."""

    numbers: tuple[int, ...]
    others: bool = False
    every: bool = False


@dataclass(frozen=True, slots=True)
class ChangedRequests:
    """Requests of a change, for output. `condition` None: all requests of these callers to these destinations.

    `callers` are the ids that `eastgate graph` uses. `spellings` are those of paths and hosts, `plain` and the other
    values of `SPELLINGS`. `destination_words` describe invented destinations.
    """

    callers: tuple[str, ...]
    caller_words: tuple[str, ...]
    destinations: tuple[str, ...]
    ports: ChangedPorts
    condition: str | None
    spellings: tuple[str, ...]
    destination_words: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return brief(self, f"{', '.join(self.caller_words)} -> {', '.join(self.destinations)}")

    @property
    def target_words(self) -> tuple[str, ...]:
        """Return the destinations as text."""
        return self.destination_words or self.destinations

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        ports = self.ports
        return {
            "from": ", ".join(self.caller_words),
            "to": ", ".join(self.target_words),
            "port": ports.numbers[0] if len(ports.numbers) == 1 and not ports.others else None,
            "condition": self.condition,
            "callers": list(self.callers),
            "destinations": list(self.destinations),
            "ports": list(ports.numbers),
            "otherPorts": ports.others,
            "spellings": list(self.spellings),
        }


@dataclass(frozen=True, slots=True)
class SideVerdict:
    """The verdict of one side on the example, the rule that decided, if any, and the reason in a sentence."""

    allowed: bool
    policy: str | None
    rule: int | None
    span: Span | None
    reason: str

    def __repr__(self) -> str:
        return brief(self, self.reason)

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "verdict": "allow" if self.allowed else "deny",
            "policy": self.policy,
            "rule": self.rule,
            "file": self.span.file if self.span is not None else None,
            "line": self.span.line if self.span is not None else None,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """Requests that change their verdict. `example` are arguments of `check`; both engines have decided it."""

    requests: ChangedRequests
    old: SideVerdict
    new: SideVerdict
    example: tuple[str, ...]

    def __repr__(self) -> str:
        return brief(self, f"now {'allowed' if self.is_wider else 'denied'}: {self.requests!r}")

    @property
    def is_wider(self) -> bool:
        """Return whether they are allowed now."""
        return self.new.allowed

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "now": "allow" if self.is_wider else "deny",
            **self.requests.to_json(),
            "example": list(self.example),
            "old": self.old.to_json(),
            "new": self.new.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Unproven:
    """A part that could not be proven: the reason, its subject, and the requests that may change, if they are known."""

    reason: DoubtReason
    subject: str
    now_allowed: bool | None = None
    requests: ChangedRequests | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        about = {} if self.requests is None else self.requests.to_json()
        now = None if self.now_allowed is None else "allow" if self.now_allowed else "deny"
        return {"reason": self.reason.value, "subject": self.subject, "now": now, **about}


@dataclass(frozen=True, slots=True)
class InventedWorkloads:
    """Workloads that Eastgate invents for the selectors of policies. `names` describe them, each kind once.

    `ports` are the numbers of ports that have only a name. `objects` are the workloads and their namespaces, as objects
    of the Kubernetes API.
    """

    names: tuple[str, ...]
    ports: tuple[tuple[int, str], ...]
    objects: tuple[Mapping[str, object], ...]

    def __repr__(self) -> str:
        return brief(self, ", ".join(self.names))

    def to_json(self) -> dict[str, object]:
        """Return them as a List of objects of the Kubernetes API."""
        return {"apiVersion": "v1", "kind": "List", "items": list(self.objects)}


@dataclass(frozen=True, slots=True)
class DiffReport:
    """Two sets of policies compared. `common`: the number of destinations on both sides.

    `source` are the arguments with which the example commands read manifests or a cluster. `invented` are workloads for
    the selectors of policies, if neither side declares any workload.
    """

    changes: tuple[VerdictChange, ...]
    unproven: tuple[Unproven, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    common: int
    changed_policies: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    invented: InventedWorkloads | None = None

    def __repr__(self) -> str:
        return brief(self, f"{self.wider} wider, {self.narrower} narrower, {len(self.unproven)} unproven")

    @property
    def proven(self) -> bool:
        """Return whether the changes are proven to be complete."""
        return not self.unproven and not self.is_void

    @property
    def is_void(self) -> bool:
        """Return whether there is nothing to compare."""
        return not self.common and not self.changes

    @property
    def equal(self) -> bool:
        """Return whether it is proven that no request to a destination of both sides changes its verdict."""
        return self.proven and not self.changes

    @property
    def wider(self) -> int:
        """Count the changes to allow."""
        return sum(change.is_wider for change in self.changes)

    @property
    def narrower(self) -> int:
        """Count the changes to deny."""
        return len(self.changes) - self.wider

    def failing(self, fail_on: FailOn) -> Iterator[VerdictChange]:
        """Yield the changes for which the comparison fails."""
        for change in self.changes:
            if fail_on is FailOn.ANY or change.is_wider is (fail_on is FailOn.WIDER):
                yield change

    def status(self, fail_on: FailOn) -> int:
        """Return the exit status: 0 without such a change, 1 with one, 3 if none was found but that is not proven."""
        if any(True for _ in self.failing(fail_on)):
            return 1
        return 0 if self.proven else 3

    def to_json(self) -> dict[str, object]:
        """Return it as plain data: the `-o json` of `diff`."""
        return {
            "equal": self.equal,
            "proven": self.proven,
            "changes": [change.to_json() for change in self.changes],
            "addedWorkloads": list(self.added),
            "removedWorkloads": list(self.removed),
            "unproven": [unproven.to_json() for unproven in self.unproven],
            "changedPolicies": list(self.changed_policies),
            "compared": self.common,
            "summary": {"wider": self.wider, "narrower": self.narrower, "unproven": len(self.unproven)},
            **({"invented": self.invented.to_json()} if self.invented is not None else {}),
        }
