"""Lowers an expression to predicates over attributes, if it is simple enough for an exact equivalent.

CEL has three outcomes, and an error is not false: `!` keeps an error, and `&&` and `||` ignore an error only if the
other side decides. So every part is lowered twice: to a predicate for true and to a predicate for false. If neither
matches, the part errs. `!` exchanges the two predicates. `&&` is And of the predicates for true, and Or of the
predicates for false. So no negation ever makes an absent attribute match.
"""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.basics.records import dataclass
from eastgate.dialects.cel.syntax import Call, CreateList, HasEntry, HasVariable, Literal, MapEntry, Node, Variable
from eastgate.dialects.cel.variables import VariableKind, Variables
from eastgate.ir.attributes import Attribute
from eastgate.ir.matchers import Matcher, OneOf, Prefix, Present, Suffix, Value
from eastgate.ir.predicates import ALWAYS, NEVER, And, Computed, Is, Not, Or, Predicate


@dataclass(frozen=True, slots=True)
class Lowered:
    """The predicates under which an expression is true, and is false. None: no equivalent predicate exists."""

    true: Predicate | None
    false: Predicate | None


_OPAQUE = Lowered(None, None)
_NOTHING = OneOf(frozenset())


def lower(node: Node, variables: Variables) -> Lowered:
    """Lower an expression of type bool to two predicates."""
    match node:
        case Literal(True):
            return Lowered(ALWAYS, NEVER)
        case Literal(False):
            return Lowered(NEVER, ALWAYS)
        case HasEntry(map_, key):
            return _given(variables.maps[map_](key))
        case HasVariable(path):
            declared = variables.attribute(path)
            return _given(declared[0]) if declared else Lowered(ALWAYS, NEVER)  # a map always exists
        case Call(function, arguments):
            return _call(function, arguments, variables)
        case _:
            return _OPAQUE


def negate(predicate: Predicate) -> Predicate:
    """Negate a predicate. The negations move to the atoms, which is easiest to read."""
    match predicate:
        case Is() | Computed():
            return Not(predicate)
        case Not(part):
            return part
        case And(parts):
            return _any(negate(part) for part in parts)
        case Or(parts):
            return _all(negate(part) for part in parts)


def _call(function: str, arguments: tuple[Node, ...], variables: Variables) -> Lowered:
    match function, arguments:
        case "!_", (part,):
            return _inverse(lower(part, variables))
        case "_&&_", parts:
            lowered = [lower(part, variables) for part in parts]
            return Lowered(_every(part.true for part in lowered), _lower_any(part.false for part in lowered))
        case "_||_", parts:
            lowered = [lower(part, variables) for part in parts]
            return Lowered(_lower_any(part.true for part in lowered), _every(part.false for part in lowered))
        case "_==_", (value, Literal() as literal) | (Literal() as literal, value):
            return _one_of(value, (literal,), variables)
        case "_!=_", (value, Literal() as literal) | (Literal() as literal, value):
            return _inverse(_one_of(value, (literal,), variables))
        case "@in", (value, CreateList(items)):
            return _one_of(value, items, variables)
        case "startsWith", (value, Literal(str(text))):
            return _matching(value, Prefix(text), variables)
        case "endsWith", (value, Literal(str(text))):
            return _matching(value, Suffix(text), variables)
        case _:
            return _OPAQUE


def _one_of(node: Node, items: tuple[Node, ...], variables: Variables) -> Lowered:
    """Lower equality with literals of the variable's own type.

    CEL also compares values of different types, which OneOf does not.
    """
    declared = _attribute(node, variables)
    wanted = (
        {VariableKind.TEXT: str, VariableKind.NUMBER: int, VariableKind.TIME: None}[declared[1]] if declared else None
    )
    values: set[Value] = set()
    for item in items:
        if not (isinstance(item, Literal) and type(item.value) is wanted and isinstance(item.value, str | int)):
            return _OPAQUE
        values.add(item.value)
    return _matching(node, OneOf(frozenset(values)), variables)


def _matching(node: Node, matcher: Matcher, variables: Variables) -> Lowered:
    """Lower an atom that errs if the attribute is absent. It is false only for a present value."""
    declared = _attribute(node, variables)
    if declared is None:
        return _OPAQUE
    present, atom = Is(declared[0], Present()), Is(declared[0], matcher, joined=declared[0].is_repeatable)
    return Lowered(NEVER, present) if matcher == _NOTHING else Lowered(atom, And((present, Not(atom))))


def _attribute(node: Node, variables: Variables) -> tuple[Attribute, VariableKind] | None:
    match node:
        case Variable(path):
            return variables.attribute(path)
        case MapEntry(map_, key):
            return variables.maps[map_](key), VariableKind.TEXT
        case _:
            return None


def _given(attribute: Attribute) -> Lowered:
    present = Is(attribute, Present())
    return Lowered(present, Not(present))


def _inverse(lowered: Lowered) -> Lowered:
    return Lowered(lowered.false, lowered.true)


def _every(parts: Iterable[Predicate | None]) -> Predicate | None:
    """Return ALL of the parts. A part without a predicate does not matter beside a part that never matches."""
    parts = tuple(parts)
    if NEVER in parts:
        return NEVER
    lowered = tuple(part for part in parts if part is not None)
    return _all(lowered) if len(lowered) == len(parts) else None


def _lower_any(parts: Iterable[Predicate | None]) -> Predicate | None:
    """Return ANY of the parts. A part without a predicate does not matter beside a part that always matches."""
    parts = tuple(parts)
    if ALWAYS in parts:
        return ALWAYS
    lowered = tuple(part for part in parts if part is not None)
    return _any(lowered) if len(lowered) == len(parts) else None


def _all(parts: Iterable[Predicate]) -> Predicate:
    flat = dict.fromkeys(inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,)))
    return next(iter(flat)) if len(flat) == 1 else And(tuple(flat))


def _any(parts: Iterable[Predicate]) -> Predicate:
    flat = dict.fromkeys(inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,)))
    return next(iter(flat)) if len(flat) == 1 else Or(tuple(flat))
