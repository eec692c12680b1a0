"""A request, as the IR sees it: attributes, each known, absent or unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eastgate.policy.attributes import BAD_HOST, HANDED_PATH, IDENTITY, PATH, PORT, UNKNOWN, Attribute, Unknown
from eastgate.policy.matchers import Known
from eastgate.policy.paths import is_refused
from eastgate.policy.predicates import Computed, Is

__all__ = ["Answer", "Request", "Ruling", "consents"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What an authorizer says that we run ourselves: also what a denied client is to see, and how it came about."""

    allowed: bool
    status: int
    text: str
    detail: object = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{'allow' if self.allowed else 'deny'}: {self.text}"


Answer = str | Ruling  # "allow", "deny" or "error": what an external authorizer says


def consents(answer: Answer | None) -> bool:
    """Whether an authorizer lets a request through. An error and no answer at all do not."""
    return answer.allowed if isinstance(answer, Ruling) else answer == "allow"


@dataclass(frozen=True, slots=True)
class Request:
    """One request. An attribute that `values` does not name is unknown; one that it maps to None is absent.

    `answers` are those of external authorizers; `assumed` says how tests over unknown attributes come out.

    `incomplete` says that an attribute which nearly every policy needs is unknown, or that the host is none: the fast
    path does not apply. `respelled_path`: patterns may match the path otherwise where a proxy compares it.
    """

    values: Mapping[Attribute, Known]
    answers: Mapping[str, Answer] = field(default_factory=dict)
    assumed: Mapping[Is | Computed, bool | None] = field(default_factory=dict)
    identity: str | Unknown | None = field(init=False, compare=False, repr=False)
    port: int | Unknown | None = field(init=False, compare=False, repr=False)
    incomplete: bool = field(init=False, compare=False, repr=False)
    refused_path: bool = field(init=False, compare=False, repr=False)
    respelled_path: bool = field(init=False, compare=False, repr=False)
    bad_host: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        identity = self.values.get(IDENTITY, UNKNOWN)
        port = self.values.get(PORT, UNKNOWN)
        path = self.values.get(PATH)
        set_ = object.__setattr__
        set_(self, "identity", identity)
        set_(self, "port", port)
        bad_host = BAD_HOST in self.values
        set_(self, "incomplete", bad_host or identity is UNKNOWN or port is UNKNOWN)
        set_(self, "refused_path", isinstance(path, str) and is_refused(path))
        set_(self, "respelled_path", HANDED_PATH in self.values)
        set_(self, "bad_host", bad_host)

    def get(self, attribute: Attribute) -> Known | Unknown:
        """The value of an attribute, None where it is absent, UNKNOWN where nobody knows."""
        return self.values.get(attribute, UNKNOWN)

    def with_value(self, attribute: Attribute, value: Known) -> Request:
        """The same request with one attribute known."""
        return Request({**self.values, attribute: value}, self.answers, self.assumed)

    def assuming(self, outcomes: Mapping[Is | Computed, bool | None]) -> Request:
        """The same request with tests that come out so; None: either way."""
        return Request(self.values, self.answers, {**self.assumed, **outcomes})
