"""A request, as the IR sees it: attributes, each known, absent or unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import cast

from eastgate.basics.records import dataclass
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
        """Set each slot directly: there is a request for every question, and `object.__setattr__` is slow."""
        get = values.get
        identity, port = get(IDENTITY, UNKNOWN), get(PORT, UNKNOWN)
        incomplete = identity is UNKNOWN or port is UNKNOWN or BAD_HOST in values
        _set_values(self, values)
        _set_answers(self, answers)
        _set_assumed(self, assumed)
        _set_within(self, within)
        _set_identity(self, identity)
        _set_port(self, port)
        _set_incomplete(self, incomplete)
        _set_needs_care(self, incomplete or HANDED_PATH in values or is_refused(get(PATH)))

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
        request = object.__new__(Request)
        _set_values(request, self.values)
        _set_answers(request, answers)
        _set_assumed(request, self.assumed)
        _set_within(request, self.within)
        _set_identity(request, self.identity)
        _set_port(request, self.port)
        _set_incomplete(request, self.incomplete)
        _set_needs_care(request, self.needs_care)
        return request

    def assuming(self, outcomes: Mapping[Is | Computed, bool | None]) -> Request:
        """Return the request with the outcomes of tests over unknown attributes; None: either way."""
        return Request(self.values, self.answers, {**self.assumed, **outcomes}, self.within)


def _setter(name: str) -> Callable[[Request, object], None]:
    return cast("Callable[[Request, object], None]", getattr(Request, name).__set__)


_set_values, _set_answers, _set_assumed = _setter("values"), _setter("answers"), _setter("assumed")
_set_within = _setter("within")
_set_identity, _set_port = _setter("identity"), _setter("port")
_set_incomplete, _set_needs_care = _setter("incomplete"), _setter("needs_care")
