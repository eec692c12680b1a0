"""A request, as the IR sees it: attributes, each known, absent or unknown."""

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
    """One request. An attribute that `values` does not name is unknown; one that it maps to None is absent.

    `answers` are those of external authorizers; `assumed` says how tests over unknown attributes come out. `within`
    is a condition on the unknown attributes together: completions that do not meet it do not count.

    `incomplete` says that an attribute which nearly every policy needs is unknown, or that the host is none: the fast
    path does not apply. `needs_care`: nor does it where rules look at more, be it for that or for the path.
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
        """Set the slots as those of an object that is not frozen: there is a request for every question."""
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
        """Return whether the host that was sent is none."""
        return BAD_HOST in self.values

    @property
    def refused_path(self) -> bool:
        """Return whether servers disagree about the path."""
        return is_refused(self.values.get(PATH))

    @property
    def respelled_path(self) -> bool:
        """Return whether patterns may match the path otherwise where a proxy compares it."""
        return HANDED_PATH in self.values

    def get(self, attribute: Attribute) -> Known | Unknown:
        """Return the value of an attribute, None where it is absent, or UNKNOWN."""
        return self.values.get(attribute, UNKNOWN)

    def with_value(self, attribute: Attribute, value: Known) -> Request:
        """Return the request with the value of one more attribute."""
        return Request({**self.values, attribute: value}, self.answers, self.assumed, self.within)

    def with_answers(self, answers: Mapping[str, Answer]) -> Request:
        """Return the request with these answers of authorizers, in the place of all others."""
        return Request(self.values, answers, self.assumed, self.within)

    def assuming(self, outcomes: Mapping[Is | Computed, bool | None]) -> Request:
        """Return the request with the outcomes of tests over unknown attributes; None: either way."""
        return Request(self.values, self.answers, {**self.assumed, **outcomes}, self.within)


_Draft = unfrozen[Request]
