"""Shapes: what a resource looks like, as data.

A dialect describes its resource once, as a tree of shapes. `check` compares a document with it and reports every
difference at its place. A record may carry rules of its own; they see only records whose fields have the right
types, so that no rule needs to check types, and one wrong field does not hide what is wrong elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from eastgate.diagnostics import Code, Reporter, did_you_mean
from eastgate.places import Span
from eastgate.schema import codes
from eastgate.sources.node import Node

__all__ = ["Anything", "Check", "Choice", "Field", "ListOf", "MapOf", "Record", "Shape", "Text", "Whole", "check"]

C = TypeVar("C")


@dataclass(slots=True)
class Check(Generic[C]):
    """One document under examination: where findings go, and what the dialect's own rules need to know."""

    reporter: Reporter
    context: C

    def report(self, code: Code, message: str, at: Node | Span, *, help: str | None = None) -> None:  # noqa: A002
        """Report a finding at a node or a span."""
        self.reporter.report(code, message, at.span if isinstance(at, Node) else at, help=help)


@dataclass(frozen=True, slots=True)
class Text(Generic[C]):
    """A string; `rule` may look at it more closely."""

    what: str = "a string"
    rule: Callable[[Node, Check[C]], None] | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number in a range."""

    minimum: int
    maximum: int
    code: Code = codes.OUT_OF_RANGE
    what: str = "a number"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few strings."""

    options: tuple[str, ...]
    code: Code = codes.NOT_A_CHOICE
    any_case: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)  # why a value that one might expect is not allowed


@dataclass(frozen=True, slots=True)
class ListOf(Generic[C]):
    """A list of one shape; `rule` may look at the list as a whole."""

    item: Shape[C]
    what: str = "a list"
    rule: Callable[[Node, Check[C]], None] | None = None


@dataclass(frozen=True, slots=True)
class MapOf(Generic[C]):
    """A mapping with free keys."""

    value: Shape[C]
    what: str = "a mapping"
    rule: Callable[[Node, Check[C]], None] | None = None


@dataclass(frozen=True, slots=True)
class Anything:
    """Not ours to check."""


@dataclass(frozen=True, slots=True)
class Field(Generic[C]):
    """One field of a record."""

    shape: Shape[C]
    required: bool = False
    missing: Code = codes.MISSING_FIELD
    help: str | None = None  # what to write where the field is missing


@dataclass(frozen=True, slots=True)
class Record(Generic[C]):
    """A mapping with known fields.

    `misspelt` names fields that people write for one that exists; `foreign` names fields that do not belong
    here at all, with a code and a sentence saying why.
    """

    what: str
    fields: Mapping[str, Field[C]]
    rules: tuple[Callable[[Node, Check[C]], None], ...] = ()
    misspelt: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, tuple[Code, str]] = field(default_factory=dict)


Shape = Text[C] | Whole | Choice | ListOf[C] | MapOf[C] | Anything | Record[C]


def check(shape: Shape[C], node: Node, to: Check[C]) -> bool:
    """Report every difference between a node and a shape. True where the node itself (not what is in it) fits."""
    if isinstance(shape, Anything):
        return True
    if node.value is None:
        to.report(
            codes.NULL_VALUE,
            f"expected {_what(shape)}, found nothing",
            node,
            help="leave the field out, or write its value",
        )
        return False
    match shape:
        case Text():
            return _check_text(shape, node, to)
        case Whole():
            return _check_whole(shape, node, to)
        case Choice():
            return _check_choice(shape, node, to)
        case ListOf():
            return _check_list(shape, node, to)
        case MapOf():
            return _check_map(shape, node, to)
        case Record():
            return _check_record(shape, node, to)


def _what(shape: Shape[C]) -> str:
    match shape:
        case Choice(options):
            return " or ".join(options)
        case Anything():
            return "a value"
        case _:
            return shape.what


def _wrong_type(shape: Shape[C], node: Node, to: Check[C], help: str | None = None) -> bool:  # noqa: A002
    to.report(codes.WRONG_TYPE, f"expected {_what(shape)}, found {node.kind}", node, help=help)
    return False


def _check_text(shape: Text[C], node: Node, to: Check[C]) -> bool:
    if not isinstance(node.value, str):
        written = node.span.underlined.strip()
        quotable = isinstance(node.value, bool | int | float)
        return _wrong_type(shape, node, to, f'quote it: "{written}"' if quotable else None)
    if shape.rule is not None:
        shape.rule(node, to)
    return True


def _check_whole(shape: Whole, node: Node, to: Check[C]) -> bool:
    if isinstance(node.value, bool) or not isinstance(node.value, int):
        is_digits = isinstance(node.value, str) and node.value.isascii() and node.value.isdigit()
        return _wrong_type(shape, node, to, f"write {node.value} without quotes" if is_digits else None)
    if not shape.minimum <= node.value <= shape.maximum:
        to.report(
            shape.code,
            f"{node.value} is not between {shape.minimum} and {shape.maximum}",
            node,
            help=f"write {shape.what} between {shape.minimum} and {shape.maximum}",
        )
    return True


def _check_choice(shape: Choice, node: Node, to: Check[C]) -> bool:
    if not isinstance(node.value, str):
        return _wrong_type(shape, node, to)
    written = node.value
    options = {o.casefold() for o in shape.options} if shape.any_case else set(shape.options)
    if (written.casefold() if shape.any_case else written) in options:
        return True
    near = did_you_mean(written, shape.options)
    reason = shape.reasons.get(written.upper())
    to.report(
        shape.code,
        f"`{written}` is not {_what(shape)}",
        node,
        help=reason or (f"did you mean `{near}`?" if near else f"write {_what(shape)}"),
    )
    return False


def _check_list(shape: ListOf[C], node: Node, to: Check[C]) -> bool:
    if not isinstance(node.value, list):
        written = node.span.underlined.strip()
        return _wrong_type(shape, node, to, f"write a list: [{written}]" if isinstance(node.value, str) else None)
    fitting = [check(shape.item, item, to) for item in node]
    if shape.rule is not None and all(fitting):
        shape.rule(node, to)
    return True


def _check_map(shape: MapOf[C], node: Node, to: Check[C]) -> bool:
    if not isinstance(node.value, dict):
        return _wrong_type(shape, node, to)
    fitting = [check(shape.value, value, to) for _, value in node.items()]
    if shape.rule is not None and all(fitting):
        shape.rule(node, to)
    return True


def _check_record(shape: Record[C], node: Node, to: Check[C]) -> bool:
    if not isinstance(node.value, dict):
        return _wrong_type(shape, node, to)
    fits = True
    for key, value in node.items():
        if key in shape.fields:
            fits = check(shape.fields[key].shape, value, to) and fits
        else:
            fits = _stranger(shape, node, key, to) and fits
    for name, of in shape.fields.items():
        if of.required and name not in node and not any(_meant(shape, key) == name for key, _ in node.items()):
            to.report(of.missing, f"{shape.what} needs `{name}`", node, help=of.help)
            fits = False
    if fits:
        for rule in shape.rules:
            rule(node, to)
    return True


def _meant(shape: Record[C], key: str) -> str | None:
    """The field that somebody who wrote an unknown key most likely meant."""
    return None if key in shape.fields else shape.misspelt.get(key) or did_you_mean(key, shape.fields)


def _stranger(shape: Record[C], node: Node, key: str, to: Check[C]) -> bool:
    if key in shape.foreign:
        code, why = shape.foreign[key]
        to.report(code, f"`{key}` does not belong in {shape.what}", node.key_span(key), help=why)
        return True  # what else is written can still be judged
    meant = _meant(shape, key)
    fields = ", ".join(f"`{name}`" for name in shape.fields)
    to.report(
        codes.UNKNOWN_FIELD,
        f"unknown field `{key}` in {shape.what}",
        node.key_span(key),
        help=f"did you mean `{meant}`?" if meant else f"the fields here are {fields}",
    )
    return meant is None
