"""Compiles a module: resolves names, and orders conditions so that every variable gets a value before its use.

OPA orders the conditions of a body so that each variable has its value before it is needed. It refuses a module without
such an order: `allow { not user }` with a misspelt `user` must not allow every caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.rego.builtins import ARITIES
from eastgate.dialects.kuadrant.rego.ordering import (
    BY_VALUE,
    declared_names,
    free_names,
    hoist,
    is_wildcard,
    mentioned_names,
    order_body,
    unsafe_variable,
)
from eastgate.dialects.kuadrant.rego.patterns import is_target, never_equal
from eastgate.dialects.kuadrant.rego.syntax import (
    DATA,
    INPUT,
    RULE,
    Array,
    Assign,
    Body,
    Call,
    Collect,
    Every,
    Holds,
    Literal,
    Module,
    Negated,
    ObjectOf,
    Ref,
    RegoRule,
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
    is_known,
    variables,
)
from eastgate.dialects.kuadrant.rego.typing import rule_type, type_problem

# Finds rules that depend on themselves. OPA refuses such modules.


def check_recursion(rules: Mapping[str, tuple[RegoRule, ...]]) -> None:
    """Raise UnsupportedModule if a rule depends on itself."""
    uses = {name: {use for rule in each for use in _uses(rule)} & rules.keys() for name, each in rules.items()}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise UnsupportedModule(f"the rule {name} depends on itself")
        if name in done:
            return
        for use in uses[name]:
            visit(use, (*above, name))
        done.add(name)

    for name in rules:
        visit(name, ())


def _uses(node: object) -> Iterator[str]:
    """Return the names of rules that a rule, term or literal refers to."""
    match node:
        case RegoRule():
            parts: Iterable[object] = (*(node.arguments or ()), node.key, node.value, *node.body, node.otherwise)
        case Var(name):
            if name.startswith(RULE):
                yield name.removeprefix(RULE)
            return
        case Call(name, arguments):
            yield name
            parts = arguments
        case Collect(_, key, value, body):
            parts = (key, value, *body)
        case Every(_, _, source, body):
            parts = (source, *body)
        case None:
            return
        case _:
            parts = children(node)  # type: ignore[arg-type]  # terms and literals are left
    for part in parts:
        yield from _uses(part)


_AUTHORINO: Final = "authorino"  # Authorino's package name for a module begins with this
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


@dataclass(frozen=True, slots=True)
class RegoProgram:
    """The rules of a module by name."""

    rules: Mapping[str, tuple[RegoRule, ...]]

    @property
    def documents(self) -> Iterator[str]:
        """Return the names of rules with a value of their own. Functions have none."""
        return (name for name, rules in self.rules.items() if rules[0].arguments is None)


def compile_module(module: Module) -> RegoProgram:
    """Compile a module. Raises UnsupportedModule."""
    grouped: dict[str, list[RegoRule]] = {}
    for rule in module.rules:
        grouped.setdefault(rule.name, []).append(rule)
    for name, rules in grouped.items():
        _check_kinds(name, rules)
        if name in module.imports or name in (INPUT, DATA):
            raise UnsupportedModule(f"{name} is the name of a rule and of an import")
    resolver = _Resolver(module, grouped)
    resolved = {name: tuple(resolver.rule(rule) for rule in rules) for name, rules in grouped.items()}
    check_recursion(resolved)
    return RegoProgram(resolved)


def _arity(rule: RegoRule) -> int | None:
    return None if rule.arguments is None else len(rule.arguments)


def _check_kinds(name: str, rules: list[RegoRule]) -> None:
    kinds = {(_arity(rule), rule.key is not None, rule.is_set) for rule in rules if not rule.default}
    if len(kinds) > 1:
        raise UnsupportedModule(f"the rules named {name} are of different kinds")
    if sum(rule.default for rule in rules) > 1:
        raise UnsupportedModule(f"{name} has more than one default")
    if any(rule.default for rule in rules) and any(rule.key is not None or rule.arguments for rule in rules):
        raise UnsupportedModule(f"{name} has a default, which only a rule with one value can have")


class _Resolver:
    def __init__(self, module: Module, rules: Mapping[str, list[RegoRule]]) -> None:
        self._imports = module.imports
        self._version = module.version
        self._arities = {name: _arity(each[0]) for name, each in rules.items()}
        self._types = {name: rule_type(each) for name, each in rules.items()}
        self._fresh = 0

    def rule(self, rule: RegoRule) -> RegoRule:
        """Resolve a rule and order its body."""
        try:
            return self._rule(rule)
        except UnsupportedVariable as problem:
            raise UnsupportedModule(f"{problem}, in the rule {rule.name}") from None

    def _rule(self, rule: RegoRule, scope: dict[str, str] | None = None) -> RegoRule:
        if scope is None:  # the rules after `else` have the arguments of the first rule
            names = {name for term in rule.arguments or () for name in variables(term)}
            scope = {name: self._new(name) for name in sorted(names)}
        arguments = None if rule.arguments is None else tuple(self._term(term, scope) for term in rule.arguments)
        bound = frozenset(name for term in arguments or () for name in variables(term))
        inner = self._scope_of(rule.body, scope)
        body, after = order_body(self._literals(rule.body, inner), bound)
        head = [None if term is None else self._term(term, inner) for term in (rule.key, rule.value)]
        outer = after | bound
        heads: list[Term | None] = []
        extra: list[Literal] = []
        for term in head:  # a reference in a head can bind variables, like a condition before it
            if term is not None and not isinstance(term, Var | Scalar):
                name = self._new("head")
                extra.append(Assign(Var(name), term))
                heads.append(Var(name))
            else:
                heads.append(term)
        tail, after = order_body(tuple(extra), outer)
        missing = [name for term in heads if term is not None for name in variables(term) - after if not is_known(name)]
        if missing:
            raise unsafe_variable(missing)
        otherwise = None if rule.otherwise is None else self._rule(rule.otherwise, scope)
        return replace(
            rule, arguments=arguments, key=heads[0], value=heads[1], body=(*body, *tail), otherwise=otherwise
        )

    def _new(self, name: str) -> str:
        self._fresh += 1
        return f"{name}#{self._fresh}"

    def _scope_of(self, body: Body, scope: Mapping[str, str]) -> dict[str, str]:
        """Return the scope of a body.

        `some` and `:=` declare a new variable for the whole body, for use after the declaration.
        """
        names: list[str] = []
        above: set[str] = set()
        for literal in body:
            early = above & set(declared_names(literal))
            if early:
                raise UnsupportedVariable(f"the variable {min(early)} is used before it is declared")
            above |= free_names(literal)
            plain = literal.literal if isinstance(literal, With) else literal
            if isinstance(plain, Assign):
                if not is_target(plain.target) or never_equal(plain.target, plain.value):
                    raise UnsupportedModule("the target of `:=` must be a variable, or an array or object of them")
                if own := variables(plain.target) & variables(plain.value):
                    raise UnsupportedVariable(f"the variable {min(own)} is used before it is declared")
            names += declared_names(literal)
        assigned = [name for name in names if not is_wildcard(name)]
        twice = {name for name in assigned if assigned.count(name) > 1}
        once = {name for literal in body if isinstance(literal, Some) for name in literal.names}
        unused = once - {name for literal in body for name in mentioned_names(literal)}
        if unused:
            raise UnsupportedVariable(f"the variable {min(unused)} is declared and not used")
        if twice:
            raise UnsupportedVariable(f"the variable {min(twice)} is declared twice")
        if self._version and not {INPUT, DATA}.isdisjoint(names):
            raise UnsupportedModule("a variable cannot be named input or data")
        return {**scope, **{name: self._new(name) for name in assigned}}

    def _body(self, body: Body, scope: Mapping[str, str]) -> tuple[Body, dict[str, str]]:
        inner = self._scope_of(body, scope)
        return self._literals(body, inner), inner

    def _literals(self, body: Body, scope: Mapping[str, str]) -> Body:
        return tuple(
            part
            for literal in body
            for part in self._hoist(self._literal(literal, scope), isinstance(_negated_part(literal), Holds))
        )

    def _hoist(self, literal: Literal, is_term: bool) -> Iterator[Literal]:
        negated = _negated_part(literal)
        if negated is None:
            yield literal
            return
        parts, rest = hoist(negated, is_term, self._new)
        for part in (*parts, Negated(rest)):
            yield With(part, literal.changes) if isinstance(literal, With) else part

    def _literal(self, literal: Literal, scope: Mapping[str, str]) -> Literal:
        match literal:
            case Holds(Call("print")):
                return Holds(Scalar(True))  # OPA removes it if there is no listener
            case Holds(Call(name, arguments)) if self._has_output(name, len(arguments)):
                return self._literal(Unify(arguments[-1], Call(name, arguments[:-1])), scope)
            case Holds(term):
                return Holds(self._check_types(self._term(term, scope)))
            case Unify(left, right):
                resolved = Unify(self._term(left, scope), self._term(right, scope))
                self._check_types(Call("equal", (resolved.left, resolved.right)))
                return resolved
            case Assign(target, value):
                return Assign(self._term(target, scope), self._term(value, scope))
            case Some():
                return literal
            case SomeIn(key, value, source):
                keyed = None if key is None else self._term(key, scope)
                return SomeIn(keyed, self._term(value, scope), self._term(source, scope))
            case Every(key, value, source, body):
                names = {variable.name: self._new(variable.name) for variable in (key, value) if variable is not None}
                unused = {name for name in names if not is_wildcard(name)} - {
                    name for condition in body for name in mentioned_names(condition)
                }
                if unused:
                    raise UnsupportedVariable(f"the variable {min(unused)} is declared and not used")
                inner, _ = self._body(body, {**scope, **names})
                keyed_by = None if key is None else Var(names[key.name])
                return Every(keyed_by, Var(names[value.name]), self._term(source, scope), inner)
            case Negated(inner_literal):
                return Negated(self._literal(inner_literal, scope))
            case With(inner_literal, changes):
                changed = tuple((path, self._term(term, scope)) for path, term in changes)
                return With(self._literal(inner_literal, scope), changed)

    def _has_output(self, name: str, count: int) -> bool:
        """Return whether a call has one argument more than the function takes.

        The last argument is then unified with the result.
        """
        arity = self._arities[name] if name in self._arities else ARITIES.get(name)
        return arity is not None and count == arity + 1

    def _check_types(self, term: Term) -> Term:
        if problem := type_problem(term, self._types):
            raise UnsupportedModule(problem)
        return term

    def _term(self, term: Term, scope: Mapping[str, str]) -> Term:
        match term:
            case Scalar():
                if term.odd:
                    raise UnsupportedModule(f"write {term.value} without a fraction and an exponent")
                return term
            case Var(name):
                return _check_package(self._variable(name, scope))
            case Ref(head, path):
                base = self._variable(head.name, scope) if isinstance(head, Var) else self._term(head, scope)
                rest = tuple(self._term(step, scope) for step in path)
                reference = Ref(base.head, (*base.path, *rest)) if isinstance(base, Ref) else Ref(base, rest)
                return self._check_types(_check_package(reference))
            case Call(name, arguments):
                plain = tuple(
                    Scalar(argument.value) if isinstance(argument, Scalar) and name in BY_VALUE else argument
                    for argument in arguments
                )
                return self._call(name, tuple(self._term(argument, scope) for argument in plain))
            case Array(items):
                return Array(tuple(self._term(item, scope) for item in items))
            case SetOf(items):
                return SetOf(tuple(self._term(item, scope) for item in items))
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
                raise UnsupportedModule(f"the function {name} must be used in a call")
            return Var(RULE + name)
        return Var(name)

    def _call(self, name: str, arguments: tuple[Term, ...]) -> Term:
        expected = self._arities[name] if name in self._arities else ARITIES.get(name)
        if expected is None:
            if name in self._arities:
                raise UnsupportedModule(f"the rule {name} is no function")
            raise UnsupportedModule(f"the built-in function {name} is not supported")
        if self._version and name in _DEPRECATED and name not in self._arities:
            raise UnsupportedModule(f"version 1 has no built-in function {name}")
        if len(arguments) != expected:
            raise UnsupportedModule(f"the function {name} takes {expected} arguments, not {len(arguments)}")
        call = Call(name, arguments)
        return call if name in self._arities else self._check_types(call)


def _check_package(term: Term) -> Term:
    """Return the term.

    Raises UnsupportedModule if the term may refer to the package of the module itself, below `data`.
    """
    match term:
        case Ref(Var("data"), (Scalar(str() as first), *_)) if first != _AUTHORINO:
            return term
        case Var("data") | Ref(Var("data")):
            raise UnsupportedModule("`data` holds the rules of the module too: use their names")
    return term


def _negated_part(literal: Literal) -> Literal | None:
    """Return the literal after the `not`."""
    plain = literal.literal if isinstance(literal, With) else literal
    return plain.literal if isinstance(plain, Negated) else None
