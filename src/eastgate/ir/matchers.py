"""Matchers: sets of values. An absent value is in none of them."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.basics.records import dataclass
from eastgate.ir.addresses import Network, parse_address
from eastgate.ir.labels import Selector, labels_of
from eastgate.ir.spiffe import AccountsOf, AnyAccount

Value = str | int
Known = Value | tuple[str, ...] | None
"""The known state of an attribute: its value, its values if it is repeated, or None if it is absent."""


def known(values: Sequence[str]) -> Known:
    """Return the known state of a repeatable attribute with these values."""
    return tuple(values) if len(values) > 1 else values[0] if values else None


def values_of(value: Known) -> tuple[Value, ...]:
    """Return every value of an attribute. A test holds if it holds for ANY value; its negation, if for none."""
    return value if isinstance(value, tuple) else () if value is None else (value,)


def joined(value: Known) -> Value | None:
    """Return all values joined to one text, as Envoy hands them to expressions."""
    return ",".join(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class OneOf:
    """Equal to ANY of the values. Nothing equals an empty set."""

    values: frozenset[Value]

    def contains(self, value: Value) -> bool:
        """Return whether the value is one of them."""
        return value in self.values

    def __str__(self) -> str:
        return " or ".join(str(v) for v in sorted(self.values, key=str)) or "nothing (an empty list)"


@dataclass(frozen=True, slots=True)
class Prefix:
    """Starts with the text."""

    text: str

    def contains(self, value: Value) -> bool:
        """Return whether the value has the prefix."""
        return isinstance(value, str) and value.startswith(self.text)

    def __str__(self) -> str:
        return f"{self.text}*"


@dataclass(frozen=True, slots=True)
class Suffix:
    """Ends with the text."""

    text: str

    def contains(self, value: Value) -> bool:
        """Return whether the value has the suffix."""
        return isinstance(value, str) and value.endswith(self.text)

    def __str__(self) -> str:
        return f"*{self.text}"


@dataclass(frozen=True, slots=True)
class InNetwork:
    """An address inside ANY of the networks."""

    networks: tuple[Network, ...]

    def contains(self, value: Value) -> bool:
        """Return whether the address is inside one of them."""
        address = parse_address(value)
        return any(address in network for network in self.networks)

    def __str__(self) -> str:
        return " or ".join(str(n) for n in self.networks) or "no network"


@dataclass(frozen=True, slots=True)
class Present:
    """Any value at all, as long as there is one."""

    def contains(self, value: Value) -> bool:  # noqa: ARG002 - every value is
        """Return True: an absent value never gets here."""
        return True

    def __str__(self) -> str:
        return "anything"


@dataclass(frozen=True, slots=True)
class Between:
    """A number of a range, both ends included."""

    first: int
    last: int

    def contains(self, value: Value) -> bool:
        """Return whether the number is in the range."""
        return isinstance(value, int) and self.first <= value <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labels, as `labels_text` writes them, that a selector selects."""

    selector: Selector

    def contains(self, value: Value) -> bool:
        """Return whether these labels are selected."""
        return self.selector.matches(labels_of(str(value)))

    def __str__(self) -> str:
        return str(self.selector)


Matcher = OneOf | Prefix | Suffix | AccountsOf | AnyAccount | InNetwork | Present | Between | Labelled
