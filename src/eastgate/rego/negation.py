"""What OPA evaluates before a `not`: where it has no value, the `not` does not hold.

`not startswith(input.user, "x")` is `user := input.user` and `not startswith(user, "x")`: without a user there is no
answer to negate. Only a reference by itself, or one that `=` or `==` compares, may be missing inside of a `not`.
"""

from __future__ import annotations

from collections.abc import Callable

from eastgate.rego.syntax import (
    Array,
    Assign,
    Call,
    Collect,
    Is,
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

__all__ = ["hoisted"]


def hoisted(negated: Literal, is_term: bool, new: Callable[[str], str]) -> tuple[list[Literal], Literal]:
    """What stands before a `not`, and what it negates. `is_term`: that was written as a term; `new`: a fresh name."""
    before = _Before(new)
    rest = negated
    match negated:
        case Is(Call("equal", (left, right))):
            rest = Is(Call("equal", (before.inside(left), before.inside(right))))
        case Is(Call(name, arguments)):
            rest = Is(Call(name, before.all(arguments)))
        case Is(term):
            rest = Is(before.inside(term))
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
        """The terms, each apart."""
        return tuple(self.apart(term) for term in terms)

    def inside(self, term: Term) -> Term:
        """The term, which itself may have no value: what is in it goes before."""
        match term:
            case Ref(head, path):
                return Ref(head if isinstance(head, Var) else self.apart(head), self.all(path))
            case Var() | Collect():
                return term
        return self.apart(term)

    def apart(self, term: Term) -> Term:
        """The term, in which variables stand for all that must have a value before."""
        match term:
            case Array(items):
                return Array(self.all(items))
            case SetOf(items):
                return SetOf(self.all(items))
            case ObjectOf(pairs):
                return ObjectOf(tuple((self.apart(key), self.apart(one)) for key, one in pairs))
            case Scalar():
                return term
            case Var(name) if not is_known(name):
                return term
        value = self.inside(term) if isinstance(term, Ref) else term
        found = Var(self._new("before"))
        # only calls, which OPA takes out first, may give values to variables
        self.parts.append(Assign(found, value, gives=isinstance(term, Call)))
        return found
