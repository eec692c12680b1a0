"""From a module as written to rules that can be run: names resolved, every variable known to get a value, in order.

OPA puts the conditions of a body into an order in which each variable has its value before it is needed, and refuses
a module where there is none: `allow { not user }` with a misspelt `user` must not allow everybody.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from eastgate.rego.builtins import ARITIES
from eastgate.rego.negation import hoisted
from eastgate.rego.patterns import is_pattern, is_target, never_equal
from eastgate.rego.recursion import check_recursion
from eastgate.rego.syntax import (
    DATA,
    INPUT,
    RULE,
    Array,
    Assign,
    Body,
    Call,
    Collect,
    Every,
    Is,
    Literal,
    Module,
    Not,
    ObjectOf,
    Problem,
    Ref,
    Rule,
    Scalar,
    SetOf,
    Some,
    SomeIn,
    Term,
    Unify,
    Var,
    With,
    children,
    closures,
    is_known,
    variables,
)
from eastgate.rego.typing import rule_type, type_problem

__all__ = ["Program", "compiled"]

MAX_TRIED: Final = 20_000
_BY_VALUE: Final = frozenset(("equal", "neq", "lt", "lte", "gt", "gte", "plus", "minus", "mul", "div"))
_AUTHORINO: Final = "authorino"  # what the name of the package begins with that Authorino gives a module
_DEPRECATED: Final = frozenset(
    (
        "all",
        "any",
        "cast_array",
        "cast_boolean",
        "cast_null",
        "cast_object",
        "cast_set",
        "cast_string",
        "re_match",
        "set_diff",
    )
)

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Program:
    """The rules of a module by name."""

    rules: Mapping[str, tuple[Rule, ...]]

    @property
    def documents(self) -> Iterator[str]:
        """The names of rules that have a value by themselves, which functions have not."""
        return (name for name, rules in self.rules.items() if rules[0].arguments is None)


def compiled(module: Module) -> Program:
    """The program. Raises Problem."""
    grouped: dict[str, list[Rule]] = {}
    for rule in module.rules:
        grouped.setdefault(rule.name, []).append(rule)
    for name, rules in grouped.items():
        _check_kinds(name, rules)
        if name in module.imports or name in (INPUT, DATA):
            raise Problem(f"{name} is the name of a rule and of an import")
    resolver = _Resolver(module, grouped)
    found = {name: tuple(resolver.rule(rule) for rule in rules) for name, rules in grouped.items()}
    check_recursion(found)
    return Program(found)


def _arity(rule: Rule) -> int | None:
    return None if rule.arguments is None else len(rule.arguments)


def _check_kinds(name: str, rules: list[Rule]) -> None:
    kinds = {(_arity(rule), rule.key is not None, rule.is_set) for rule in rules if not rule.default}
    if len(kinds) > 1:
        raise Problem(f"the rules named {name} are of different kinds")
    if sum(rule.default for rule in rules) > 1:
        raise Problem(f"{name} has more than one default")
    if any(rule.default for rule in rules) and any(rule.key is not None or rule.arguments for rule in rules):
        raise Problem(f"{name} has a default, which only a rule with one value can have")


# Names


class _Resolver:
    def __init__(self, module: Module, rules: Mapping[str, list[Rule]]) -> None:
        self._imports = module.imports
        self._version = module.version
        self._arities = {name: _arity(each[0]) for name, each in rules.items()}
        self._types = {name: rule_type(each) for name, each in rules.items()}
        self._fresh = 0

    def rule(self, rule: Rule) -> Rule:
        """The rule, resolved and put into order."""
        try:
            return self._rule(rule)
        except Problem as problem:
            if str(problem).startswith(("the variable", "line")):
                raise Problem(f"{problem}, in the rule {rule.name}") from None
            raise

    def _rule(self, rule: Rule, scope: dict[str, str] | None = None) -> Rule:
        if scope is None:  # the rules after `else` have the arguments of the first
            names = {name for term in rule.arguments or () for name in variables(term)}
            scope = {name: self._new(name) for name in sorted(names)}
        arguments = None if rule.arguments is None else tuple(self._term(term, scope) for term in rule.arguments)
        bound = frozenset(name for term in arguments or () for name in variables(term))
        inner = self._declared(rule.body, scope)
        body, after = _ordered(self._literals(rule.body, inner), bound)
        head = [None if term is None else self._term(term, inner) for term in (rule.key, rule.value)]
        outer = after | bound
        placed: list[Term | None] = []
        extra: list[Literal] = []
        for term in head:  # a reference in a head may give values to its variables, like a condition before it
            if term is not None and not isinstance(term, Var | Scalar):
                name = self._new("head")
                extra.append(Assign(Var(name), term))
                placed.append(Var(name))
            else:
                placed.append(term)
        tail, after = _ordered(tuple(extra), outer)
        missing = [
            name for term in placed if term is not None for name in variables(term) - after if not is_known(name)
        ]
        if missing:
            raise _unsafe(missing)
        otherwise = None if rule.otherwise is None else self._rule(rule.otherwise, scope)
        return replace(
            rule, arguments=arguments, key=placed[0], value=placed[1], body=(*body, *tail), otherwise=otherwise
        )

    def _new(self, name: str) -> str:
        self._fresh += 1
        return f"{name}#{self._fresh}"

    def _declared(self, body: Body, scope: Mapping[str, str]) -> dict[str, str]:
        """The scope of a body: what `some` and `:=` declare is new in all of it, and used after that only."""
        names: list[str] = []
        above: set[str] = set()
        for literal in body:
            early = above & set(_declares(literal))
            if early:
                raise Problem(f"the variable {min(early)} is used before it is declared")
            above |= _free(literal)
            plain = literal.literal if isinstance(literal, With) else literal
            if isinstance(plain, Assign):
                if not is_target(plain.target) or never_equal(plain.target, plain.value):
                    raise Problem("the target of `:=` must be a variable, or an array or object of them")
                if own := variables(plain.target) & variables(plain.value):
                    raise Problem(f"the variable {min(own)} is used before it is declared")
            names += _declares(literal)
        assigned = [name for name in names if not _is_wildcard(name)]
        twice = {name for name in assigned if assigned.count(name) > 1}
        once = {name for one in body if isinstance(one, Some) for name in one.names}
        unused = once - {name for one in body for name in _mentioned(one)}
        if unused:
            raise Problem(f"the variable {min(unused)} is declared and not used")
        if twice:
            raise Problem(f"the variable {min(twice)} is declared twice")
        if self._version and not {INPUT, DATA}.isdisjoint(names):
            raise Problem("a variable cannot be named input or data")
        return {**scope, **{name: self._new(name) for name in assigned}}

    def _body(self, body: Body, scope: Mapping[str, str]) -> tuple[Body, dict[str, str]]:
        inner = self._declared(body, scope)
        return self._literals(body, inner), inner

    def _literals(self, body: Body, scope: Mapping[str, str]) -> Body:
        return tuple(
            part for one in body for part in self._hoisted(self._literal(one, scope), isinstance(_negated(one), Is))
        )

    def _hoisted(self, literal: Literal, is_term: bool) -> Iterator[Literal]:
        negated = _negated(literal)
        if negated is None:
            yield literal
            return
        parts, rest = hoisted(negated, is_term, self._new)
        for part in (*parts, Not(rest)):
            yield With(part, literal.changes) if isinstance(literal, With) else part

    def _literal(self, literal: Literal, scope: Mapping[str, str]) -> Literal:
        match literal:
            case Is(Call("print")):
                return Is(Scalar(True))  # OPA takes it away where nobody listens
            case Is(Call(name, arguments)) if self._has_output(name, len(arguments)):
                return self._literal(Unify(arguments[-1], Call(name, arguments[:-1])), scope)
            case Is(term):
                return Is(self._checked(self._term(term, scope)))
            case Unify(left, right):
                resolved = Unify(self._term(left, scope), self._term(right, scope))
                self._checked(Call("equal", (resolved.left, resolved.right)))
                return resolved
            case Assign(target, value):
                return Assign(self._term(target, scope), self._term(value, scope))
            case Some():
                return literal
            case SomeIn(key, value, source):
                keyed = None if key is None else self._term(key, scope)
                return SomeIn(keyed, self._term(value, scope), self._term(source, scope))
            case Every(key, value, source, body):
                names = {one.name: self._new(one.name) for one in (key, value) if one is not None}
                unused = {name for name in names if not _is_wildcard(name)} - {
                    name for one in body for name in _mentioned(one)
                }
                if unused:
                    raise Problem(f"the variable {min(unused)} is declared and not used")
                inner, _ = self._body(body, {**scope, **names})
                keyed_by = None if key is None else Var(names[key.name])
                return Every(keyed_by, Var(names[value.name]), self._term(source, scope), inner)
            case Not(inner_literal):
                return Not(self._literal(inner_literal, scope))
            case With(inner_literal, changes):
                changed = tuple((path, self._term(term, scope)) for path, term in changes)
                return With(self._literal(inner_literal, scope), changed)

    def _has_output(self, name: str, count: int) -> bool:
        """Whether a call has one argument more than the function takes: it is unified with what the function gives."""
        arity = self._arities[name] if name in self._arities else ARITIES.get(name)
        return arity is not None and count == arity + 1

    def _checked(self, term: Term) -> Term:
        if problem := type_problem(term, self._types):
            raise Problem(problem)
        return term

    def _term(self, term: Term, scope: Mapping[str, str]) -> Term:
        match term:
            case Scalar():
                if term.odd:
                    raise Problem(f"write {term.value} without a fraction and an exponent")
                return term
            case Var(name):
                return _elsewhere(self._variable(name, scope))
            case Ref(head, path):
                base = self._variable(head.name, scope) if isinstance(head, Var) else self._term(head, scope)
                rest = tuple(self._term(one, scope) for one in path)
                found = Ref(base.head, (*base.path, *rest)) if isinstance(base, Ref) else Ref(base, rest)
                return self._checked(_elsewhere(found))
            case Call(name, arguments):
                plain = tuple(
                    Scalar(one.value) if isinstance(one, Scalar) and name in _BY_VALUE else one for one in arguments
                )
                return self._call(name, tuple(self._term(one, scope) for one in plain))
            case Array(items):
                return Array(tuple(self._term(one, scope) for one in items))
            case SetOf(items):
                return SetOf(tuple(self._term(one, scope) for one in items))
            case ObjectOf(pairs):
                return ObjectOf(tuple((self._term(key, scope), self._term(value, scope)) for key, value in pairs))
            case Collect(kind, key, value, body):
                resolved, inner = self._body(body, scope)
                keyed = None if key is None else self._term(key, inner)
                return Collect(kind, keyed, self._term(value, inner), resolved)

    def _variable(self, name: str, scope: Mapping[str, str]) -> Term:
        if name in scope:
            return Var(scope[name])
        if name in self._imports:
            return self._imports[name]
        if name in self._arities:
            if self._arities[name] is not None:
                raise Problem(f"the function {name} must be called")
            return Var(RULE + name)
        return Var(name)

    def _call(self, name: str, arguments: tuple[Term, ...]) -> Term:
        expected = self._arities[name] if name in self._arities else ARITIES.get(name)
        if expected is None:
            if name in self._arities:
                raise Problem(f"the rule {name} is no function")
            raise Problem(f"the built-in function {name} is not supported")
        if self._version and name in _DEPRECATED and name not in self._arities:
            raise Problem(f"version 1 has no built-in function {name}")
        if len(arguments) != expected:
            raise Problem(f"the function {name} takes {expected} arguments, not {len(arguments)}")
        call = Call(name, arguments)
        return call if name in self._arities else self._checked(call)


def _elsewhere(term: Term) -> Term:
    """The term. Raises Problem where it could be in the module's own package, whose rules are below `data` as well."""
    match term:
        case Ref(Var("data"), (Scalar(str() as first), *_)) if first != _AUTHORINO:
            return term
        case Var("data") | Ref(Var("data")):
            raise Problem("`data` holds the rules of the module too: use their names")
    return term


def _negated(literal: Literal) -> Literal | None:
    """What stands after the `not` of a literal."""
    plain = literal.literal if isinstance(literal, With) else literal
    return plain.literal if isinstance(plain, Not) else None


def _declares(literal: Literal) -> list[str]:
    """The names that a literal declares."""
    match literal.literal if isinstance(literal, With) else literal:
        case Some(names):
            return list(names)
        case SomeIn(key, value, _):
            return [name for term in (key, value) if term is not None for name in sorted(variables(term))]
        case Assign(target, _):
            return sorted(variables(target))
    return []


def _mentioned(literal: Literal) -> set[str]:
    """The names in a literal and in the bodies inside it."""
    return variables(literal).union(*(_all_variables(closure) for closure in closures(literal)))


def _free(literal: Term | Literal) -> set[str]:
    """The names in a literal and in the bodies inside it, without those that the bodies declare."""
    found = variables(literal)
    for closure in closures(literal):
        heads = (closure.key, closure.value)
        if isinstance(closure, Collect):
            inside = set[str]().union(*(_free(part) for part in (*closure.body, *heads) if part is not None))
            own: set[str] = set()
        else:
            inside = set[str]().union(*map(_free, closure.body))
            own = {one.name for one in (closure.key, closure.value) if one is not None}
        found |= inside - own - {name for one in closure.body for name in _declares(one)}
    return found


def _is_wildcard(name: str) -> bool:
    return name.startswith("_") and name[1:].isdigit()


# Order


def _unsafe(names: Iterable[str]) -> Problem:
    shown = min(name.partition("#")[0] for name in names)
    return Problem(f"the variable {'_' if _is_wildcard(shown) else shown} has no value")


def _ordered(body: Body, bound: Names) -> tuple[Body, Names]:
    """The literals in an order in which each has what it needs, and all variables that have values after them."""
    outside = frozenset(name for literal in body for name in variables(literal))
    left, done = [one for one in body if not isinstance(one, Some)], list[Literal]()
    tried = 0
    while left:
        for at, literal in enumerate(left):
            tried += 1
            if tried > MAX_TRIED:
                raise Problem("a body has too many conditions that need what comes after them")
            given = _given(literal, bound)
            if _needed(literal) <= bound | given and _closed(literal, outside) <= bound:
                ready = bound
                for part in _apart(literal, given - bound):
                    ready |= _given(part, ready)
                    done.append(_with_ordered_bodies(part, ready))
                bound |= given
                del left[at]
                break
        else:
            missing = {name for one in left for name in _needed(one) - bound - _given(one, bound)}
            raise _unsafe(missing or {name for one in left for name in _closed(one, outside) - bound})
    return tuple(done), bound


def _needed(literal: Literal) -> Names:
    return frozenset(name for name in variables(literal) if not is_known(name))


def _apart(literal: Literal, given: Names) -> Iterator[Literal]:
    """The literal, after references that give values to variables which it uses elsewhere too."""
    inside = literal.literal if isinstance(literal, With) else literal
    if not isinstance(inside, Is | Unify | Assign) or not any(_occurrences(inside, name) > 1 for name in given):
        yield literal
        return
    references: list[tuple[str, Ref]] = []

    def placed(term: Term) -> Term:
        match term:
            case Ref(head, path):
                inner = Ref(placed(head), tuple(placed(one) for one in path))
                if variables(inner) & given:
                    references.append((f"place#{next(_PLACES)}", inner))
                    return Var(references[-1][0])
                return inner
            case Call(name, arguments):
                return Call(name, tuple(placed(one) for one in arguments))
            case Array(items):
                return Array(tuple(placed(one) for one in items))
            case SetOf(items):
                return SetOf(tuple(placed(one) for one in items))
            case ObjectOf(pairs):
                return ObjectOf(tuple((placed(key), placed(one)) for key, one in pairs))
        return term

    rest: Literal
    match inside:
        case Is(term):
            rest = Is(placed(term))
        case Unify(left, right):
            rest = Unify(placed(left), placed(right))
        case Assign(target, value):
            rest = Assign(target, placed(value))
    parts: list[Literal] = [*(Assign(Var(name), reference) for name, reference in references), rest]
    yield from (With(part, literal.changes) for part in parts) if isinstance(literal, With) else parts


_PLACES: Final = itertools.count(1)


def _occurrences(node: Term | Literal, name: str) -> int:
    if isinstance(node, Var):
        return int(node.name == name)
    return sum(_occurrences(child, name) for child in children(node))


def _closed(literal: Literal, outside: Names) -> Names:
    """The variables that bodies inside a literal share with the body that it stands in."""
    inside = {name for closure in closures(literal) for name in _all_variables(closure)}
    return frozenset(name for name in inside & outside if not is_known(name))


def _all_variables(closure: Collect | Every) -> set[str]:
    found: set[str] = set()
    parts: list[Term | Literal] = list(closure.body)
    if isinstance(closure, Collect):
        parts += [closure.value, *([] if closure.key is None else [closure.key])]
    for part in parts:
        found |= variables(part)
        for inner in closures(part):
            found |= _all_variables(inner)
    if isinstance(closure, Every):
        found -= {one.name for one in (closure.key, closure.value) if one is not None}
    return found


def _given(literal: Literal, bound: Names) -> Names:
    """The variables that a literal gives values to."""
    match literal:
        case Is(term):
            return _from_references(term, bound)
        case Unify(left, right):
            given = _from_references(left, bound) | _from_references(right, bound)
            return given | _unified(left, right, bound | given)
        case Assign(target, value, gives):
            given = _from_references(value, bound) if gives else frozenset()
            return given | frozenset(variables(target)) if _has_values(value, bound | given) else given
        case SomeIn(key, value, source):
            given = _from_references(source, bound)
            if not _has_values(source, bound | given):
                return given
            return given | frozenset(name for one in (key, value) if one is not None for name in variables(one))
        case With(inner, changes):
            if any(not _has_values(term, bound) for _, term in changes):
                return frozenset()
            return _given(inner, bound)
    return frozenset()


def _has_values(term: Term, bound: Names) -> bool:
    return all(name in bound or is_known(name) for name in variables(term))


def _unified(left: Term, right: Term, bound: Names) -> Names:
    if isinstance(left, Array) and isinstance(right, Array) and len(left.items) == len(right.items):
        given = frozenset[str]()
        for mine, other in zip(left.items, right.items, strict=True):
            given |= _unified(mine, other, bound | given)
        return given
    given = frozenset[str]()
    if never_equal(left, right):
        return given
    if _has_values(right, bound) and is_pattern(left):
        given |= variables(left)
    if _has_values(left, bound) and is_pattern(right):
        given |= variables(right)
    return frozenset(name for name in given if not is_known(name))


def _from_references(term: Term | Literal, bound: Names) -> Names:
    """The variables in brackets after something that has a value: `input.list[x]`."""
    given: Names = frozenset()
    for child in children(term):
        given |= _from_references(child, bound | given)
    if isinstance(term, Ref) and _has_values(term.head, bound | given):
        for place in term.path:
            if is_pattern(place):
                given |= frozenset(name for name in variables(place) if not is_known(name))
    return given - bound


def _with_ordered_bodies(node: Literal, bound: Names) -> Literal:
    """The literal with the bodies inside it in order too."""
    match node:
        case Is(term):
            return Is(_ordered_term(term, bound))
        case Unify(left, right):
            return Unify(_ordered_term(left, bound), _ordered_term(right, bound))
        case Assign(target, value):
            return Assign(target, _ordered_term(value, bound))
        case SomeIn(key, value, source):
            return SomeIn(key, value, _ordered_term(source, bound))
        case Every(key, value, source, body):
            names = frozenset(one.name for one in (key, value) if one is not None)
            return Every(key, value, _ordered_term(source, bound), _ordered(body, bound | names)[0])
        case Not(inner):
            return Not(_with_ordered_bodies(inner, bound))
        case With(inner, changes):
            changed = tuple((path, _ordered_term(term, bound)) for path, term in changes)
            return With(_with_ordered_bodies(inner, bound), changed)
    return node


def _ordered_term(term: Term, bound: Names) -> Term:
    match term:
        case Ref(head, path):
            return Ref(_ordered_term(head, bound), tuple(_ordered_term(one, bound) for one in path))
        case Call(name, arguments):
            return Call(name, tuple(_ordered_term(one, bound) for one in arguments))
        case Array(items):
            return Array(tuple(_ordered_term(one, bound) for one in items))
        case SetOf(items):
            return SetOf(tuple(_ordered_term(one, bound) for one in items))
        case ObjectOf(pairs):
            return ObjectOf(tuple((_ordered_term(key, bound), _ordered_term(one, bound)) for key, one in pairs))
        case Collect(kind, key, value, body):
            body, after = _ordered(body, bound)
            heads: list[Term] = [value, *([] if key is None else [key])]
            ordered_heads, after = _ordered(tuple(Is(one) for one in heads), after)
            del ordered_heads
            return Collect(
                kind,
                None if key is None else _ordered_term(key, after),
                _ordered_term(value, after),
                body,
            )
    return term
