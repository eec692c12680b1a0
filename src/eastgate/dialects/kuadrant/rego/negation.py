"""Moves out of a `not` what OPA evaluates before it: where that has no value, the `not` does not hold."""

from __future__ import annotations

from collections.abc import Callable

from eastgate.dialects.kuadrant.rego.syntax import (
    Array,
    Assign,
    Call,
    Collect,
    Holds,
    Literal,
    ObjectOf,
    Ref,
    Scalar,
    SetOf,
    Term,
    Unify,
    Var,
    is_known,
)


def hoist(negated: Literal, is_term: bool, new: Callable[[str], str]) -> tuple[list[Literal], Literal]:
    """Return what to evaluate before a `not`, and what it negates. `is_term`: that was a term; `new`: makes names."""
    before = _Before(new)
    rest = negated
    match negated:
        case Holds(Call("equal", (left, right))):
            rest = Holds(Call("equal", (before.inside(left), before.inside(right))))
        case Holds(Call(name, arguments)):
            rest = Holds(Call(name, before.all(arguments)))
        case Holds(term):
            rest = Holds(before.inside(term))
        case Unify(output, Call(name, arguments)) if is_term:  # it was written as one argument more
            rest = Unify(before.apart(output), Call(name, before.all(arguments)))
        case Unify(left, right):
            rest = Unify(before.inside(left), before.inside(right))
    return before.parts, rest


class _Before:
    def __init__(self, new: Callable[[str], str]) -> None:
        self.parts: list[Literal] = []
        self._new = new

    def all(self, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """Return the terms, each with what is inside moved out."""
        return tuple(self.apart(term) for term in terms)

    def inside(self, term: Term) -> Term:
        """Return the term, which itself may have no value: what is in it is moved out."""
        match term:
            case Ref(head, path):
                return Ref(head if isinstance(head, Var) else self.apart(head), self.all(path))
            case Var() | Collect():
                return term
        return self.apart(term)

    def apart(self, term: Term) -> Term:
        """Return the term with variables for all that must have a value before."""
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
        # only calls, which OPA takes out first, may give values to variables
        self.parts.append(Assign(variable, value, gives=isinstance(term, Call)))
        return variable
