"""Evaluates a program: finds all solutions of its bodies, one condition after the other.

A condition yields its solutions, each with values for more variables. A function that errs yields none, as in OPA. But
if that would make a `not` hold, there is no answer at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from decimal import Decimal
from typing import Final, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.rego.builtins import FUNCTIONS, Bounded, Failed, walked
from eastgate.dialects.kuadrant.rego.compiling import RegoProgram
from eastgate.dialects.kuadrant.rego.syntax import (
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
    Var,
    With,
)
from eastgate.dialects.kuadrant.rego.values import (
    Object,
    Set,
    Value,
    compare,
    entries_of,
    identity,
    replace_at,
    values_at,
    weight,
)

Bindings: TypeAlias = Mapping[str, Value]

MAX_STEPS: Final = 100_000
FRACTION_STEPS: Final = 50  # steps for arithmetic with a number that is no integer


class NoAnswer(Exception):  # noqa: N818 - an answer of sorts, which denies
    """The program has no answer for this input. The message contains nothing of the input."""


@dataclass(slots=True)
class StepBudget:
    """The remaining steps of an evaluation."""

    left: int = MAX_STEPS
    errors: int = 0
    """The number of calls that erred."""

    def spend(self, steps: int = 1) -> None:
        """Spend steps. Raises NoAnswer if there are not enough."""
        self.left -= steps
        if self.left < 0:
            raise NoAnswer("it takes too long")


def evaluate_program(program: RegoProgram, input_: Value, now: int, budget: StepBudget) -> dict[str, Value]:
    """Return the values of all rules with a value. `now`: nanoseconds since 1970. Raises NoAnswer."""
    run = _Evaluation(program, input_, budget, now)
    try:
        documents = ((name, run.document(name)) for name in program.documents)
        return {name: value[0] for name, value in documents if value is not None}
    except Bounded as error:
        raise NoAnswer(str(error)) from None
    except RecursionError:
        raise NoAnswer("it is too deep") from None


@dataclass(slots=True)
class _Evaluation:
    program: RegoProgram
    input: Value
    budget: StepBudget
    now: int
    _documents: dict[str, tuple[tuple[Value] | None, int]] = field(default_factory=dict)

    # Rules

    def document(self, name: str) -> tuple[Value] | None:
        """Return the value of a rule in a tuple, or None if it has none."""
        if name not in self._documents:
            before = self.budget.errors
            value = self._document(self.program.rules[name])
            self._documents[name] = value, self.budget.errors - before
        else:
            self.budget.errors += self._documents[name][1]
        return self._documents[name][0]

    def _document(self, rules: tuple[RegoRule, ...]) -> tuple[Value] | None:
        if rules[0].is_set:
            return (self._charge(Set(key for rule in rules for key, _ in self._partial(rule))),)
        if rules[0].key is not None:
            return (self._charge(self._object(pair for rule in rules for pair in self._partial(rule))),)
        value = self._one_value((rule, {}) for rule in rules if not rule.default)
        default = next((rule for rule in rules if rule.default), None)
        if value is None and default is not None:
            value = self._one_value(iter([(default, {})]))
        return value

    def _partial(self, rule: RegoRule) -> Iterator[tuple[Value, Value]]:
        for bindings in self._solutions(rule.body, {}):
            for key, bound in self._values(rule.key or Scalar(None), bindings):
                if rule.value is None:
                    yield key, None
                else:
                    for value, _ in self._values(rule.value, bound):
                        yield key, value

    def _object(self, pairs: Iterator[tuple[Value, Value]]) -> Object:
        pairs_by_key: dict[object, tuple[Value, Value]] = {}
        for key, value in pairs:
            first = pairs_by_key.setdefault(identity(key), (key, value))
            if compare(first[1], value):
                raise NoAnswer("an object has two values for one key")
        return Object(pairs_by_key.values())

    def _one_value(self, tried: Iterator[tuple[RegoRule, Bindings]]) -> tuple[Value] | None:
        """Return the one value on which all solutions agree."""
        result: tuple[Value] | None = None
        for rule, bindings in tried:
            for value in self._rule_values(rule, bindings):
                if result is not None and compare(result[0], value):
                    raise NoAnswer("a rule has two values")
                result = (value,)
        return result

    def _rule_values(self, rule: RegoRule | None, bindings: Bindings) -> Iterator[Value]:
        while rule is not None:
            any_ = False
            for solution in self._solutions(rule.body, bindings):
                for value, _ in self._values(rule.value or Scalar(True), solution):
                    any_ = True
                    yield value
            if any_:
                return
            rule = rule.otherwise

    def _function(self, name: str, arguments: tuple[Value, ...]) -> tuple[Value] | None:
        def tried() -> Iterator[tuple[RegoRule, Bindings]]:
            for rule in self.program.rules[name]:
                for bindings in self._match_all(rule.arguments or (), arguments, {}):
                    yield rule, bindings

        return self._one_value(tried())

    # Bodies

    def _solutions(self, body: Body, bindings: Bindings) -> Iterator[Bindings]:
        if not body:
            yield bindings
            return
        for solution in self._solve(body[0], bindings):
            yield from self._solutions(body[1:], solution)

    def _solve(self, literal: Literal, bindings: Bindings) -> Iterator[Bindings]:
        self.budget.spend()
        match literal:
            case Holds(term):
                yield from (bound for value, bound in self._values(term, bindings) if value is not False)
            case Unify(left, right):
                yield from self._unify(left, right, bindings)
            case Assign(target, term):
                for value, bound in self._values(term, bindings):
                    yield from self._match(target, value, bound)
            case Some():
                yield bindings
            case SomeIn():
                yield from self._some_in(literal, bindings)
            case Every():
                yield from self._every(literal, bindings)
            case Negated(inner_literal):
                if not self._ever_holds(inner_literal, bindings):
                    yield bindings
            case With(inner_literal, changes):
                yield from self._with(inner_literal, changes, bindings)

    def _some_in(self, literal: SomeIn, bindings: Bindings) -> Iterator[Bindings]:
        for collection, bound in self._values(literal.source, bindings):
            for name, value in entries_of(collection):
                self.budget.spend()
                for inner in [bound] if literal.key is None else self._match(literal.key, name, bound):
                    yield from self._match(literal.value, value, inner)

    def _ever_holds(self, literal: Literal, bindings: Bindings) -> bool:
        before = self.budget.errors
        if next(self._solve(literal, bindings), None) is not None:
            return True
        if self.budget.errors > before:
            raise NoAnswer("a function errs in a `not`, which would make it hold")
        return False

    def _every(self, every: Every, bindings: Bindings) -> Iterator[Bindings]:
        for collection, bound in self._values(every.source, bindings):
            if not isinstance(collection, tuple | Set | Object):
                continue
            for name, value in entries_of(collection):
                key = {} if every.key is None else {every.key.name: name}
                inner = {**bound, **key, every.value.name: value}
                if next(self._solutions(every.body, inner), None) is None:
                    break
            else:
                yield bound

    def _with(
        self, literal: Literal, changes: tuple[tuple[tuple[str, ...], Term], ...], bindings: Bindings
    ) -> Iterator[Bindings]:
        changed = self.input
        for path, term in changes:
            replacement = next(self._values(term, bindings), None)
            if replacement is None:
                return
            changed = replace_at(changed, path, replacement[0])
        yield from _Evaluation(self.program, changed, self.budget, self.now)._solve(literal, bindings)

    # Terms

    def _values(self, term: Term, bindings: Bindings) -> Iterator[tuple[Value, Bindings]]:
        """Yield all values of a term, each with the variables that its references bind."""
        self.budget.spend()
        match term:
            case Scalar(value):
                yield value, bindings
            case Var(name):
                variable = self._variable(name, bindings)
                if variable is not None:
                    yield variable[0], bindings
            case Ref(head, path):
                for value, bound in self._values(head, bindings):
                    yield from self._within(value, path, bound)
            case Call(name, arguments):
                for values, bound in self._all_values(arguments, bindings):
                    yield from ((value, bound) for value in self._call(name, values))
            case Array(items):
                yield from ((self._charge(values), bound) for values, bound in self._all_values(items, bindings))
            case SetOf(items):
                yield from ((self._charge(Set(values)), bound) for values, bound in self._all_values(items, bindings))
            case ObjectOf(pairs):
                yield from self._objects(pairs, bindings)
            case Collect():
                yield self._charge(self._collect(term, bindings)), bindings

    def _objects(self, pairs: tuple[tuple[Term, Term], ...], bindings: Bindings) -> Iterator[tuple[Value, Bindings]]:
        flat = tuple(part for pair in pairs for part in pair)
        for values, bound in self._all_values(flat, bindings):
            yield self._charge(self._object(zip(values[::2], values[1::2], strict=True))), bound

    def _charge(self, value: Value) -> Value:
        """Return the value, and spend a step for each of its parts. A part that occurs twice is counted twice."""
        self.budget.spend(weight(value, self.budget.left))
        return value

    def _variable(self, name: str, bindings: Bindings) -> tuple[Value] | None:
        if name in bindings:
            return (bindings[name],)
        if name.startswith(RULE):
            return self.document(name.removeprefix(RULE))
        return (self.input,) if name == INPUT else None  # `data` is empty

    def _all_values(self, terms: tuple[Term, ...], bindings: Bindings) -> Iterator[tuple[tuple[Value, ...], Bindings]]:
        if not terms:
            yield (), bindings
            return
        for value, bound in self._values(terms[0], bindings):
            for rest, inner in self._all_values(terms[1:], bound):
                yield (value, *rest), inner

    def _call(self, name: str, values: tuple[Value, ...]) -> Iterator[Value]:
        if name in self.program.rules:
            result = self._function(name, values)
            if result is not None:
                yield result[0]
        elif name == "walk":
            for pair in walked((), values[0]):
                self.budget.spend()
                yield pair
        elif name == "time.now_ns":
            yield self.now
        else:
            for value in values:  # the size of its arguments
                self.budget.spend(FRACTION_STEPS if isinstance(value, Decimal) else weight(value, self.budget.left))
            try:
                yield self._charge(FUNCTIONS[name](*values))
            except Failed:
                self.budget.errors += 1

    def _collect(self, term: Collect, bindings: Bindings) -> Value:
        def solutions() -> Iterator[tuple[Value, Value]]:
            for solution in self._solutions(term.body, bindings):
                for key, bound in self._values(term.key or Scalar(None), solution):
                    for value, _ in self._values(term.value, bound):
                        yield key, value

        match term.kind:
            case "[":
                return tuple(value for _, value in solutions())
            case "{":
                return Set(value for _, value in solutions())
        return self._object(solutions())

    def _within(self, value: Value, path: tuple[Term, ...], bindings: Bindings) -> Iterator[tuple[Value, Bindings]]:
        """Yield the values at a path into a value. Unbound variables match every key."""
        if not path:
            yield value, bindings
            return
        self.budget.spend()
        step, rest = path[0], path[1:]
        if self._is_open(step, bindings):
            for key, item in entries_of(value):
                self.budget.spend()
                for bound in self._match(step, key, bindings):
                    yield from self._within(item, rest, bound)
            return
        for key, bound in self._values(step, bindings):
            for item in values_at(value, key):
                yield from self._within(item, rest, bound)

    def _is_open(self, term: Term, bindings: Bindings) -> bool:
        match term:
            case Var(name):
                return name not in bindings and name != INPUT and not name.startswith(RULE)
            case Array(items):
                return any(self._is_open(item, bindings) for item in items)
            case ObjectOf(pairs):
                return any(self._is_open(item, bindings) for _, item in pairs)
        return False

    # Unification

    def _unify(self, left: Term, right: Term, bindings: Bindings) -> Iterator[Bindings]:
        match left, right:
            case Array(mine), Array(others):
                if len(mine) == len(others):
                    yield from self._unify_all(tuple(zip(mine, others, strict=True)), bindings)
                return
        first, second = (right, left) if self._is_open(left, bindings) else (left, right)
        for value, bound in self._values(first, bindings):
            yield from self._match(second, value, bound)

    def _unify_all(self, pairs: tuple[tuple[Term, Term], ...], bindings: Bindings) -> Iterator[Bindings]:
        if not pairs:
            yield bindings
            return
        for bound in self._unify(*pairs[0], bindings):
            yield from self._unify_all(pairs[1:], bound)

    def _match(self, pattern: Term, value: Value, bindings: Bindings) -> Iterator[Bindings]:
        """Yield the bindings that make the pattern equal to the value."""
        match pattern:
            case Var(name) if self._is_open(pattern, bindings):
                yield {**bindings, name: value}
            case Array(items) if self._is_open(pattern, bindings):
                if isinstance(value, tuple) and len(items) == len(value):
                    yield from self._match_all(items, value, bindings)
            case ObjectOf(pairs) if self._is_open(pattern, bindings):
                yield from self._match_object(pairs, value, bindings)
            case _:
                for candidate, bound in self._values(pattern, bindings):
                    if compare(candidate, value) == 0:
                        yield bound

    def _match_all(
        self, patterns: tuple[Term, ...], values: tuple[Value, ...], bindings: Bindings
    ) -> Iterator[Bindings]:
        if not patterns:
            yield bindings
            return
        for bound in self._match(patterns[0], values[0], bindings):
            yield from self._match_all(patterns[1:], values[1:], bound)

    def _match_object(
        self, pairs: tuple[tuple[Term, Term], ...], value: Value, bindings: Bindings
    ) -> Iterator[Bindings]:
        if not isinstance(value, Object) or len(value) != len(pairs):
            return
        for keys, bound in self._all_values(tuple(key for key, _ in pairs), bindings):
            entries = [value.get(key) for key in keys]
            items = tuple(entry[0] for entry in entries if entry is not None)
            if len(items) == len(pairs):
                yield from self._match_all(tuple(term for _, term in pairs), items, bound)
