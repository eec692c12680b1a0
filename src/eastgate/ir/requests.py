"""Requests of the IR. Each attribute of a request is known, absent or unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from eastgate.basics.records import dataclass, set_class, unfrozen
from eastgate.ir.attributes import BAD_HOST, HANDED_PATH, IDENTITY, PATH, PORT, UNKNOWN, Attribute, Unknown
from eastgate.ir.authorizers import Answer
from eastgate.ir.matchers import Known
from eastgate.ir.paths import is_refused
from eastgate.ir.predicates import Computed, Is, Predicate

_NO_ANSWERS: Mapping[str, Answer] = {}
_NOTHING_ASSUMED: Mapping[Is | Computed, bool | None] = {}


@dataclass(frozen=True, slots=True, init=False)
class Request:
    """One request. An attribute that `values` does not name is unknown; an attribute with the value None is absent.

    `answers` are the answers of external authorizers. `assumed` has the results of tests on unknown attributes.
    `within` is a condition on the unknown attributes together: completions that do not meet it do not count.

    `incomplete`: an attribute that nearly every policy reads is unknown, or the host is invalid, so that the fast path
    cannot decide. `needs_care`: the fast path cannot decide if rules read more attributes, for this reason or the path.
    """

    values: Mapping[Attribute, Known]
    answers: Mapping[str, Answer]
    assumed: Mapping[Is | Computed, bool | None]
    within: Predicate | None
    identity: str | Unknown | None = field(init=False, compare=False, repr=False)
    port: int | Unknown | None = field(init=False, compare=False, repr=False)
    incomplete: bool = field(init=False, compare=False, repr=False)
    needs_care: bool = field(init=False, compare=False, repr=False)

    def __init__(
        self,
        values: Mapping[Attribute, Known],
        answers: Mapping[str, Answer] = _NO_ANSWERS,
        assumed: Mapping[Is | Computed, bool | None] = _NOTHING_ASSUMED,
        within: Predicate | None = None,
    ) -> None:
        """Set the fields without the cost of a frozen class, because each question makes a request."""
        draft: Any = self
        set_class(draft, _Draft)
        draft.values = values
        draft.answers = answers
        draft.assumed = assumed
        draft.within = within
        draft.identity = identity = values.get(IDENTITY, UNKNOWN)
        draft.port = port = values.get(PORT, UNKNOWN)
        draft.incomplete = incomplete = identity is UNKNOWN or port is UNKNOWN or BAD_HOST in values
        draft.needs_care = incomplete or HANDED_PATH in values or (PATH in values and is_refused(values[PATH]))
        draft.__class__ = Request

    @property
    def bad_host(self) -> bool:
        """Return whether the host that the client sent is invalid."""
        return BAD_HOST in self.values

    @property
    def refused_path(self) -> bool:
        """Return whether servers interpret the path differently."""
        return is_refused(self.values.get(PATH))

    @property
    def respelled_path(self) -> bool:
        """Return whether a proxy may see a spelling of the path for which regular expressions give another result."""
        return HANDED_PATH in self.values

    def get(self, attribute: Attribute) -> Known | Unknown:
        """Return the value of an attribute: None if it is absent, UNKNOWN if it is unknown."""
        return self.values.get(attribute, UNKNOWN)

    def with_value(self, attribute: Attribute, value: Known) -> Request:
        """Return the request with the value of one more attribute."""
        return Request({**self.values, attribute: value}, self.answers, self.assumed, self.within)

    def with_answers(self, answers: Mapping[str, Answer]) -> Request:
        """Return the request with these answers of authorizers instead of its own."""
        return Request(self.values, answers, self.assumed, self.within)

    def assuming(self, outcomes: Mapping[Is | Computed, bool | None]) -> Request:
        """Return the request with these results of tests on unknown attributes. None: either result is possible."""
        return Request(self.values, self.answers, {**self.assumed, **outcomes}, self.within)


_Draft = unfrozen[Request]
