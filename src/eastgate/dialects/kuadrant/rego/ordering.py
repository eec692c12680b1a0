"""Orders the conditions of a body so that every variable has a value before it is used."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from eastgate.dialects.kuadrant.rego.patterns import is_pattern, never_equal
from eastgate.dialects.kuadrant.rego.syntax import (
    Array,
    Assign,
    Body,
    Call,
    Collect,
    Every,
    Holds,
    Literal,
    Negated,
    ObjectOf,
    Ref,
    Scalar,
    SetOf,
    Some,
    SomeIn,
    Term,
    Unify,
    UnsupportedModule,
    UnsupportedVariable,
    Var,
    With,
    children,
    closures,
    is_known,
    variables,
)

# Moves terms out of a `not` that OPA evaluates before it. If such a term has no value, the `not` does not hold.


def hoist(negated: Literal, is_term: bool, new: Callable[[str], str]) -> tuple[list[Literal], Literal]:
    """Return the literals to evaluate before a `not`, and the negated literal.

    `is_term`: that was a term. `new`: makes names.
    """
    before = _Before(new)
    rest = negated
    match negated:
        case Holds(Call("equal", (left, right))):
            rest = Holds(Call("equal", (before.inside(left), before.inside(right))))
        case Holds(Call(name, arguments)):
            rest = Holds(Call(name, before.all(arguments)))
        case Holds(term):
            rest = Holds(before.inside(term))
        case Unify(output, Call(name, arguments)) if is_term:  # the result was written as a further argument
            rest = Unify(before.apart(output), Call(name, before.all(arguments)))
        case Unify(left, right):
            rest = Unify(before.inside(left), before.inside(right))
    return before.parts, rest


class _Before:
    def __init__(self, new: Callable[[str], str]) -> None:
        self.parts: list[Literal] = []
        self._new = new

    def all(self, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """Return the terms. The parts inside of them are moved out."""
        return tuple(self.apart(term) for term in terms)

    def inside(self, term: Term) -> Term:
        """Return the term, which may have no value. Its parts are moved out."""
        match term:
            case Ref(head, path):
                return Ref(head if isinstance(head, Var) else self.apart(head), self.all(path))
            case Var() | Collect():
                return term
        return self.apart(term)

    def apart(self, term: Term) -> Term:
        """Return the term with a variable for each part that must have a value before."""
        match term:
            case Array(items):
                return Array(self.all(items))
            case SetOf(items):
                return SetOf(self.all(items))
            case ObjectOf(pairs):
                return ObjectOf(tuple((self.apart(key), self.apart(value)) for key, value in pairs))
            case Scalar():
                return term
            case Var(name) if not is_known(name):
                return term
        value = self.inside(term) if isinstance(term, Ref) else term
        variable = Var(self._new("before"))
        # only calls can bind variables, and OPA moves calls out first
        self.parts.append(Assign(variable, value, gives=isinstance(term, Call)))
        return variable


MAX_TRIED: Final = 20_000
BY_VALUE: Final = frozenset(("equal", "neq", "lt", "lte", "gt", "gte", "plus", "minus", "mul", "div"))

Names = frozenset[str]


def declared_names(literal: Literal) -> list[str]:
    """Return the names that a literal declares."""
    match literal.literal if isinstance(literal, With) else literal:
        case Some(names):
            return list(names)
        case SomeIn(key, value, _):
            return [name for term in (key, value) if term is not None for name in sorted(variables(term))]
        case Assign(target, _):
            return sorted(variables(target))
    return []


def mentioned_names(literal: Literal) -> set[str]:
    """Return the names in a literal and in the bodies inside it."""
    return variables(literal).union(*(_all_variables(closure) for closure in closures(literal)))


def free_names(literal: Term | Literal) -> set[str]:
    """Return the names in a literal and its bodies, except those that the bodies declare."""
    names = variables(literal)
    for closure in closures(literal):
        heads = (closure.key, closure.value)
        if isinstance(closure, Collect):
            inside = set[str]().union(*(free_names(part) for part in (*closure.body, *heads) if part is not None))
            own: set[str] = set()
        else:
            inside = set[str]().union(*map(free_names, closure.body))
            own = {variable.name for variable in (closure.key, closure.value) if variable is not None}
        names |= inside - own - {name for condition in closure.body for name in declared_names(condition)}
    return names


def is_wildcard(name: str) -> bool:
    return name.startswith("_") and name[1:].isdigit()


def unsafe_variable(names: Iterable[str]) -> UnsupportedVariable:
    shown = min(name.partition("#")[0] for name in names)
    return UnsupportedVariable(f"the variable {'_' if is_wildcard(shown) else shown} has no value")


def order_body(body: Body, bound: Names) -> tuple[Body, Names]:
    """Order literals so that each has the values that it needs.

    Return them, and all variables with values after them.
    """
    outside = frozenset(name for literal in body for name in variables(literal))
    left, done = [condition for condition in body if not isinstance(condition, Some)], list[Literal]()
    tried = 0
    while left:
        for at, literal in enumerate(left):
            tried += 1
            if tried > MAX_TRIED:
                raise UnsupportedModule("a body has too many conditions that need later conditions")
            given = _bound_by(literal, bound)
            if _needed(literal) <= bound | given and _shared_variables(literal, outside) <= bound:
                ready = bound
                for part in _split_references(literal, given - bound):
                    ready |= _bound_by(part, ready)
                    done.append(_order_bodies(part, ready))
                bound |= given
                del left[at]
                break
        else:
            missing = {name for condition in left for name in _needed(condition) - bound - _bound_by(condition, bound)}
            raise unsafe_variable(
                missing or {name for condition in left for name in _shared_variables(condition, outside) - bound}
            )
    return tuple(done), bound


def _needed(literal: Literal) -> Names:
    return frozenset(name for name in variables(literal) if not is_known(name))


def _split_references(literal: Literal, given: Names) -> Iterator[Literal]:
    """Yield the literal, after references that bind variables which it also uses elsewhere."""
    inside = literal.literal if isinstance(literal, With) else literal
    if not isinstance(inside, Holds | Unify | Assign) or not any(_occurrences(inside, name) > 1 for name in given):
        yield literal
        return
    references: list[tuple[str, Ref]] = []

    def pull_out(term: Term) -> Term:
        match term:
            case Ref(head, path):
                inner = Ref(pull_out(head), tuple(pull_out(item) for item in path))
                if variables(inner) & given:
                    references.append((f"place#{next(_PLACES)}", inner))
                    return Var(references[-1][0])
                return inner
            case Call(name, arguments):
                return Call(name, tuple(pull_out(item) for item in arguments))
            case Array(items):
                return Array(tuple(pull_out(item) for item in items))
            case SetOf(items):
                return SetOf(tuple(pull_out(item) for item in items))
            case ObjectOf(pairs):
                return ObjectOf(tuple((pull_out(key), pull_out(item)) for key, item in pairs))
        return term

    rest: Literal
    match inside:
        case Holds(term):
            rest = Holds(pull_out(term))
        case Unify(left, right):
            rest = Unify(pull_out(left), pull_out(right))
        case Assign(target, value):
            rest = Assign(target, pull_out(value))
    parts: list[Literal] = [*(Assign(Var(name), reference) for name, reference in references), rest]
    yield from (With(part, literal.changes) for part in parts) if isinstance(literal, With) else parts


_PLACES: Final = itertools.count(1)


def _occurrences(node: Term | Literal, name: str) -> int:
    if isinstance(node, Var):
        return int(node.name == name)
    return sum(_occurrences(child, name) for child in children(node))


def _shared_variables(literal: Literal, outside: Names) -> Names:
    """Return the variables that bodies inside a literal share with the surrounding body."""
    inside = {name for closure in closures(literal) for name in _all_variables(closure)}
    return frozenset(name for name in inside & outside if not is_known(name))


def _all_variables(closure: Collect | Every) -> set[str]:
    names: set[str] = set()
    parts: list[Term | Literal] = list(closure.body)
    if isinstance(closure, Collect):
        parts += [closure.value, *([] if closure.key is None else [closure.key])]
    for part in parts:
        names |= variables(part)
        for inner in closures(part):
            names |= _all_variables(inner)
    if isinstance(closure, Every):
        names -= {variable.name for variable in (closure.key, closure.value) if variable is not None}
    return names


def _bound_by(literal: Literal, bound: Names) -> Names:
    """Return the variables that a literal binds."""
    match literal:
        case Holds(term):
            return _bound_by_references(term, bound)
        case Unify(left, right):
            given = _bound_by_references(left, bound) | _bound_by_references(right, bound)
            return given | _bound_by_unifying(left, right, bound | given)
        case Assign(target, value, gives):
            given = _bound_by_references(value, bound) if gives else frozenset()
            return given | frozenset(variables(target)) if _has_values(value, bound | given) else given
        case SomeIn(key, value, source):
            given = _bound_by_references(source, bound)
            if not _has_values(source, bound | given):
                return given
            return given | frozenset(name for term in (key, value) if term is not None for name in variables(term))
        case With(inner, changes):
            if any(not _has_values(term, bound) for _, term in changes):
                return frozenset()
            return _bound_by(inner, bound)
    return frozenset()


def _has_values(term: Term, bound: Names) -> bool:
    return all(name in bound or is_known(name) for name in variables(term))


def _bound_by_unifying(left: Term, right: Term, bound: Names) -> Names:
    if isinstance(left, Array) and isinstance(right, Array) and len(left.items) == len(right.items):
        given = frozenset[str]()
        for mine, other in zip(left.items, right.items, strict=True):
            given |= _bound_by_unifying(mine, other, bound | given)
        return given
    given = frozenset[str]()
    if never_equal(left, right):
        return given
    if _has_values(right, bound) and is_pattern(left):
        given |= variables(left)
    if _has_values(left, bound) and is_pattern(right):
        given |= variables(right)
    return frozenset(name for name in given if not is_known(name))


def _bound_by_references(term: Term | Literal, bound: Names) -> Names:
    """Return the variables in brackets after a bound term: `input.list[x]`."""
    given: Names = frozenset()
    for child in children(term):
        given |= _bound_by_references(child, bound | given)
    if isinstance(term, Ref) and _has_values(term.head, bound | given):
        for step in term.path:
            if is_pattern(step):
                given |= frozenset(name for name in variables(step) if not is_known(name))
    return given - bound


def _order_bodies(node: Literal, bound: Names) -> Literal:
    """Return the literal with its inner bodies ordered too."""
    match node:
        case Holds(term):
            return Holds(_order_term(term, bound))
        case Unify(left, right):
            return Unify(_order_term(left, bound), _order_term(right, bound))
        case Assign(target, value):
            return Assign(target, _order_term(value, bound))
        case SomeIn(key, value, source):
            return SomeIn(key, value, _order_term(source, bound))
        case Every(key, value, source, body):
            names = frozenset(variable.name for variable in (key, value) if variable is not None)
            return Every(key, value, _order_term(source, bound), order_body(body, bound | names)[0])
        case Negated(inner):
            return Negated(_order_bodies(inner, bound))
        case With(inner, changes):
            changed = tuple((path, _order_term(term, bound)) for path, term in changes)
            return With(_order_bodies(inner, bound), changed)
    return node


def _order_term(term: Term, bound: Names) -> Term:
    match term:
        case Ref(head, path):
            return Ref(_order_term(head, bound), tuple(_order_term(part, bound) for part in path))
        case Call(name, arguments):
            return Call(name, tuple(_order_term(part, bound) for part in arguments))
        case Array(items):
            return Array(tuple(_order_term(part, bound) for part in items))
        case SetOf(items):
            return SetOf(tuple(_order_term(part, bound) for part in items))
        case ObjectOf(pairs):
            return ObjectOf(tuple((_order_term(key, bound), _order_term(part, bound)) for key, part in pairs))
        case Collect(kind, key, value, body):
            body, after = order_body(body, bound)
            heads: list[Term] = [value, *([] if key is None else [key])]
            ordered_heads, after = order_body(tuple(Holds(part) for part in heads), after)
            del ordered_heads
            return Collect(
                kind,
                None if key is None else _order_term(key, after),
                _order_term(value, after),
                body,
            )
    return term
