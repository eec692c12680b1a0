"""The result of a comparison: changes as people say them, and the JSON of `eastgate diff`."""

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
    """The changes that a comparison fails for: the values of `--fail-on`."""

    WIDER = "wider"
    NARROWER = "narrower"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class ChangedPorts:
    """Ports of a change. `others`: also those that nothing names; `every`: there are no ports beside them."""

    numbers: tuple[int, ...]
    others: bool = False
    every: bool = False


@dataclass(frozen=True, slots=True)
class ChangedRequests:
    """Requests as people say them. `condition` None: all of these callers to these destinations.

    `callers` are the ids that `eastgate graph` has for them too. `spellings` are those of paths and hosts, `plain` and
    the other values of `SPELLINGS`. `destination_words` say what destinations are that are invented.
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
        """Return the destinations as people say them."""
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
    """The verdict of one side on the example, the rule that decided, if one did, and the reason in a sentence."""

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
    """Requests that change their verdict. `example` are words of `check`, of which both engines were asked."""

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
    """What could not be proven: why, what it is about, and the requests that may change, where it is about some."""

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
    """Workloads that stand for those that policies would select. `names` say what they are, each kind once.

    `ports` are numbers that stand for ports by name. `objects` are the workloads and their namespaces, as objects of
    the Kubernetes API.
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
    """Two sets of policies compared. `common`: how many destinations are on both sides.

    `source` are the arguments by which the commands of examples read manifests, or a cluster. `invented` are workloads
    that stand for those that policies would select, where neither side declares any.
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
        """Return whether every request that changes is in some change."""
        return not self.unproven and not self.is_void

    @property
    def is_void(self) -> bool:
        """Return whether there was nothing to compare."""
        return not self.common and not self.changes

    @property
    def equal(self) -> bool:
        """Return whether it is proven that no request to what is on both sides changes its verdict."""
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
        """Yield the changes that such a comparison fails for."""
        for change in self.changes:
            if fail_on is FailOn.ANY or change.is_wider is (fail_on is FailOn.WIDER):
                yield change

    def status(self, fail_on: FailOn) -> int:
        """Return the exit status: 0 no such change, 1 some, 3 none was found and that is not proven."""
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
