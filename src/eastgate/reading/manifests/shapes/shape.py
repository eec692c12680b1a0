"""Shapes: the structure of a resource, as data.

A dialect describes its resource once, as a tree of shapes. `check` compares a document with it, and reports every
difference at its position. A record may have rules of its own. They are called only if its fields, and the entries of
its lists and mappings, have the right types, so no rule needs to check types. One wrong field does not hide errors
elsewhere. A rule reads fields of inner records with `get`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Generic, TypeVar

from eastgate.basics.diagnostics import Code, Reporter, did_you_mean
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.ir.spiffe import SPIFFE_ID
from eastgate.reading.manifests.findings import shown
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import codes

# Regular expressions for names that API servers and editors support. They mean the same in Go's RE2, in Python and in
# JavaScript: no look-ahead, no Unicode classes. If one expression cannot limit the length of a part, a second one does.


__all__ = [
    "DNS_LABEL",
    "DNS_SUBDOMAIN",
    "LABEL_KEY",
    "LABEL_KEY_LENGTHS",
    "LABEL_VALUE",
    "NOT_COMPARABLE",
    "SPIFFE_ID",
    "any_case",
    "path_with_wildcard",
    "whole",
]

DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
DNS_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_VALUE = f"({_WORD})?"
LABEL_KEY = f"({DNS_SUBDOMAIN}/)?{_WORD}"
LABEL_KEY_LENGTHS = "([^/]{1,253}/)?[^/]*"

# Parts that no request path has: empty and dot segments, encoded slashes, and characters that need no encoding.
NOT_COMPARABLE = r"//|/\.\.?(/|$|;|%3[bB])|%(2[dDeEfF]|3[0-9]|4[1-9a-fA-F]|5[0-9aAcCfF]|6[1-9a-fA-F]|7[0-9aAeE])"
_NOT_IN_PATHS = r"*?#\\\x00-\x1f\x7f-\x9f"


def path_with_wildcard(*, spaces: bool = True) -> str:
    """Return the pattern of a path with at most one `*`, at its end or at its beginning."""
    others = f"[^{_NOT_IN_PATHS}]*" if spaces else rf"[^{_NOT_IN_PATHS}\x20\xa0]*"
    return rf"^(/{others}\*?|\*{others})$"


def whole(pattern: str) -> str:
    """Return the expression that matches whole texts only."""
    return f"^({pattern})$" if "|" in pattern else f"^{pattern}$"


def any_case(*words: str) -> str:
    """Return a pattern of words that ignores the case of letters."""
    return "|".join("".join(f"[{letter.upper()}{letter.lower()}]" for letter in word) for word in words)


C = TypeVar("C")
Condition = Callable[[Mapping[str, object]], bool]


@dataclass(slots=True)
class Check(Generic[C]):
    """The check of one document: the destination of its findings, and the context for rules of the dialect."""

    reporter: Reporter
    context: C

    def report(self, code: Code, message: str, at: Node | Span, *, help: str | None = None) -> None:  # noqa: A002
        """Report a finding at a node or a span."""
        self.reporter.report(code, message, at.span if isinstance(at, Node) else at, help=help)


@dataclass(frozen=True, slots=True)
class Text(Generic[C]):
    """A string; `rule` may check it further. `served` is its greatest length for an API server (see `ListOf`).

    `make`, here and in lists and records, is the function that a `reader` calls.
    """

    what: str = "a string"
    rule: Callable[[Node, Check[C]], None] | None = None
    served: int | None = None
    make: Callable[[str], object] | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number in a range; with `or_name`, or the name of one."""

    minimum: int
    maximum: int
    code: Code = codes.OUT_OF_RANGE
    what: str = "a number"
    or_name: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few strings. `reasons` explain why a value that users might expect is not allowed; its keys
    are in capitals.
    """

    options: tuple[str, ...]
    code: Code = codes.NOT_A_CHOICE
    any_case: bool = False
    reasons: Mapping[str, tuple[Code, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean."""

    what: str = "true or false"


@dataclass(frozen=True, slots=True)
class ListOf(Generic[C]):
    """A list of one shape; `rule` may check the list as a whole.

    `served` is the greatest number of entries for an API server, whose work must be bounded. A file may have any
    number.
    """

    item: Shape[C]
    what: str = "a list"
    rule: Callable[[Node, Check[C]], None] | None = None
    served: int | None = None
    make: Callable[[tuple[Any, ...]], object] | None = None


@dataclass(frozen=True, slots=True)
class MapOf(Generic[C]):
    """A mapping with free keys. Some keys may have a shape of their own. `served` is as in `ListOf`."""

    value: Shape[C]
    what: str = "a mapping"
    rule: Callable[[Node, Check[C]], None] | None = None
    known: Mapping[str, Shape[C]] = field(default_factory=dict)
    served: int | None = None


@dataclass(frozen=True, slots=True)
class Anything:
    """A value that is not checked."""


@dataclass(frozen=True, slots=True)
class Field(Generic[C]):
    """One field of a record."""

    shape: Shape[C]
    required: bool = False
    missing: Code = codes.MISSING_FIELD
    help: str | None = None  # the text to write if the field is missing, or has no value
    about: str | None = None  # its description for CustomResourceDefinitions, editors and docs
    refused: bool = False  # a known field that is always an error; a rule reports it
    needed: Condition | None = None  # whether it is required, given the fields beside it
    when: Condition | None = None  # whether it is read at all, given the fields beside it
    implied: bool = False  # whether an absent mapping counts as an empty one, in which a field may be missing
    into: str | None = None  # the parameter for its value, if it has another name
    blank: bool = False  # whether an empty text counts as absent
    home: bool = False  # whether an absent value is the namespace of the object


@dataclass(frozen=True, slots=True)
class Record(Generic[C]):
    """A mapping with known fields.

    `misspelt` maps wrong names to existing fields, and `advice` has a help text for wrong names without an equivalent.
    `foreign` are fields of other resources, with a code and the reason. `otherwise` is the help for any other unknown
    field. `about` is the description. `served` is the schema for an API server, if the fields depend on each other.
    """

    what: str
    fields: Mapping[str, Field[C]]
    rules: tuple[Callable[[Node, Check[C]], None], ...] = ()
    misspelt: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, tuple[Code, str]] = field(default_factory=dict)
    otherwise: str | None = None
    about: str | None = None
    served: Record[C] | None = None
    shorthand: str | None = None  # help for a mere string in the place of `{}`
    # takes the fields by name; without it, they are arguments of the record around it
    make: Callable[..., Any] | None = None
    # optional fields for which an API server can refuse unknown ones: the alternatives double with each
    counted: int = 6


Shape = Text[C] | Whole | Choice | Flag | ListOf[C] | MapOf[C] | Anything | Record[C]


def quoted(text: str) -> str:
    """Return a text in quotes for a sentence."""
    return f"`{shown(text)}`" if text else '`""`'


def enumerated(words: Sequence[str], last: str) -> str:
    """Join words for a sentence: a, b and c."""
    return f" {last} ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def check(shape: Shape[C], node: Node, to: Check[C], at: Span | None = None) -> bool:
    """Report every difference between a node and a shape. Return True if the node itself fits, and each entry of a
    list.

    The fields of a record need not fit. `at` is the position for missing values, for example the key of the node.
    """
    if isinstance(shape, Anything):
        return True
    if node.value is None:
        return _nothing(f"expected {_describe(shape)}, found nothing", node, to, "remove the entry, or write its value")
    match shape:
        case Text():
            return _check_text(shape, node, to)
        case Whole():
            return _check_whole(shape, node, to)
        case Choice():
            return _check_choice(shape, node, to)
        case Flag():
            return isinstance(node.value, bool) or _wrong_type(shape, node, to, f"write {shape.what}, without quotes")
        case ListOf():
            return _check_list(shape, node, to)
        case MapOf():
            return _check_map(shape, node, to)
        case Record():
            return _check_record(shape, node, to, at or node.span)


def _describe(shape: Shape[C]) -> str:
    match shape:
        case Choice(options):
            return enumerated(options, "or")
        case Anything():
            return "a value"
        case _:
            return shape.what


def _nothing(message: str, node: Node, to: Check[C], help: str) -> bool:  # noqa: A002
    to.report(codes.NULL_VALUE, message, node, help=help)
    return False


def _wrong_type(shape: Shape[C], node: Node, to: Check[C], help: str) -> bool:  # noqa: A002
    to.report(codes.WRONG_TYPE, f"expected {_describe(shape)}, found {node.kind}", node, help=help)
    return False


def _is_scalar(node: Node) -> bool:
    return isinstance(node.value, str | bool | int | float)


def _check_text(shape: Text[C], node: Node, to: Check[C]) -> bool:
    if not isinstance(node.value, str):
        literal = node.span.underlined.strip()
        return _wrong_type(shape, node, to, f'quote it: "{literal}"' if _is_scalar(node) else f"write {shape.what}")
    if shape.rule is not None:
        shape.rule(node, to)
    return True


def _check_whole(shape: Whole, node: Node, to: Check[C]) -> bool:
    way_out = f"write {shape.what} between {shape.minimum} and {shape.maximum}"
    if isinstance(node.value, float):
        to.report(codes.WRONG_TYPE, f"{node.value} is not a whole number", node, help=way_out)
        return False
    if isinstance(node.value, bool) or not isinstance(node.value, int):
        is_digits = isinstance(node.value, str) and node.value.isascii() and node.value.isdigit()
        return _wrong_type(shape, node, to, f"write {node.value} without quotes" if is_digits else way_out)
    if not shape.minimum <= node.value <= shape.maximum:
        message = f"{node.value} is not between {shape.minimum} and {shape.maximum}"
        to.report(shape.code, message, node, help=way_out)
    return True


def _check_choice(shape: Choice, node: Node, to: Check[C]) -> bool:
    if not isinstance(node.value, str):
        return _wrong_type(shape, node, to, f"write {_describe(shape)}")
    value = node.value
    any_case = shape.any_case and value.isascii()  # without this, the Kelvin sign would be a K
    if value in shape.options or (any_case and value.lower() in {option.lower() for option in shape.options}):
        return True
    near = did_you_mean(value, shape.options)
    way_out = f"did you mean `{near}`?" if near else f"write {_describe(shape)}"
    code, help_ = shape.reasons.get(value.upper(), (shape.code, way_out))
    to.report(code, f"{quoted(value)} is not {_describe(shape)}", node, help=help_)
    return False


def _check_list(shape: ListOf[C], node: Node, to: Check[C]) -> bool:
    if not isinstance(node.value, list):
        return _wrong_type(shape, node, to, _as_a_list(shape, node))
    fitting = [check(shape.item, item, to) for item in node]
    if shape.rule is not None and all(fitting):
        shape.rule(node, to)
    return all(fitting)


def _as_a_list(shape: ListOf[C], node: Node) -> str:
    literal = node.span.underlined.strip()
    if isinstance(shape.item, Record) and not isinstance(node.value, dict):
        return f"write a list; the fields of each entry are {_fields(shape.item)}"
    in_line = _is_scalar(node) or literal.startswith("{")
    return f"write a list: [{shown(literal)}]" if in_line else "write a list: put `- ` before it"


def _check_map(shape: MapOf[C], node: Node, to: Check[C]) -> bool:
    if not isinstance(node.value, dict):
        return _wrong_type(shape, node, to, "write key: value")
    fitting = [
        _nothing(f"`{shown(key)}` has no value", value, to, 'write "" if it is to be empty')
        if value.value is None
        else check(shape.known.get(key, shape.value), value, to)
        for key, value in node.items()
    ]
    if shape.rule is not None and all(fitting):
        shape.rule(node, to)
    return all(fitting)


def _check_record(shape: Record[C], node: Node, to: Check[C], at: Span) -> bool:
    if not isinstance(node.value, dict):
        message = f"{shape.what} is a mapping, not {node.kind}"
        to.report(codes.WRONG_TYPE, message, node, help=_otherwise(shape))
        return False
    fits = True
    for key, value in node.items():
        if key not in shape.fields:
            fits = _stranger(shape, node, key, to) and fits
        elif value.value is None and not isinstance(shape.fields[key].shape, Anything):
            fits = _nothing(f"`{key}` has no value", value, to, _fill(shape.fields[key], key))
        else:
            fits = check(shape.fields[key].shape, value, to, node.key_span(key)) and fits
    for name, of in shape.fields.items():
        if of.required and name not in node and not any(_meant(shape, key) == name for key, _ in node.items()):
            to.report(of.missing, f"{shape.what} needs `{name}`", at, help=of.help or f"write `{name}`")
            fits = False
    if fits:
        for rule in shape.rules:
            rule(node, to)
    return True


def _fill(of: Field[C], key: str) -> str:
    """Return the help for a field without a value."""
    return of.help or ("write its value" if of.required else f"leave `{key}` out, or write its value")


def _fields(shape: Record[C]) -> str:
    return ", ".join(f"`{name}`" for name in shape.fields)


def _otherwise(shape: Record[C]) -> str:
    return shape.otherwise or f"the fields here are {_fields(shape)}"


def _meant(shape: Record[C], key: str) -> str | None:
    """Return the field that an unknown key most likely means."""
    if key in shape.fields or _negated(shape, key) is not None:
        return None
    return shape.misspelt.get(key) or did_you_mean(key, shape.fields)


def _negated(shape: Record[C], key: str) -> str | None:
    """Return the field that an unknown key negates. Suggesting that field would reverse the meaning."""
    positive = key.casefold().removeprefix("not")
    fields = (name for name in shape.fields if name.casefold() == positive)
    return next(fields, None) if positive != key.casefold() else None


def _stranger(shape: Record[C], node: Node, key: str, to: Check[C]) -> bool:
    if key in shape.foreign:
        code, why = shape.foreign[key]
        to.report(code, f"`{key}` does not belong in {shape.what}", node.key_span(key), help=why)
        return True  # the other fields can still be checked
    suggested, negated = _meant(shape, key), _negated(shape, key)
    help_ = shape.advice.get(key) or _otherwise(shape)
    if negated is not None:
        help_ = f"`{negated}` cannot be negated: list the values to match"
    elif suggested is not None and key not in shape.advice:
        help_ = f"did you mean `{suggested}`?"
    to.report(codes.UNKNOWN_FIELD, f"unknown field `{shown(key)}` in {shape.what}", node.key_span(key), help=help_)
    return suggested is None
