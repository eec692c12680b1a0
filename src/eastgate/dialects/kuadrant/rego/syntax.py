"""The syntax tree of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.rego.values import Value

INPUT: Final = "input"
DATA: Final = "data"
RULE: Final = "rule "  # prefix of the names of variables for rules of the module


class UnsupportedModule(Exception):  # noqa: N818 - what is wrong with a module, in words for its author
    """Eastgate cannot evaluate the module as OPA would."""


class UnsupportedVariable(UnsupportedModule):
    """A rule uses a variable in a way that OPA refuses."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """null, a boolean, a number or a text. `odd`: an integer that is written `1.0` or `1e3`; OPA keeps that form."""

    value: Value
    odd: bool = False


@dataclass(frozen=True, slots=True)
class Var:
    """A variable that each body binds. Each `_` has a new name."""

    name: str


@dataclass(frozen=True, slots=True)
class Ref:
    """A value and a path into it: `input.a[x]`. Its head is a variable, a call, or a literal."""

    head: Term
    path: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function call, of the module or built in. Operators are functions too."""

    name: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """An array literal."""

    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class SetOf:
    """A set literal."""

    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ObjectOf:
    """An object literal."""

    items: tuple[tuple[Term, Term], ...]


@dataclass(frozen=True, slots=True)
class Collect:
    """A comprehension: of kind `[`, `{` or `:`, the last one with a key."""

    kind: str
    key: Term | None
    value: Term
    body: Body


Term: TypeAlias = Scalar | Var | Ref | Call | Array | SetOf | ObjectOf | Collect


@dataclass(frozen=True, slots=True)
class Holds:
    """A term that must exist and not be false."""

    term: Term


@dataclass(frozen=True, slots=True)
class Unify:
    """`left = right`."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Assign:
    """`target := value`: the target's variables are new. `gives`: references in the value can bind variables too."""

    target: Term
    value: Term
    gives: bool = True


@dataclass(frozen=True, slots=True)
class Some:
    """`some x, y`: new variables."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SomeIn:
    """`some key, value in source`."""

    key: Term | None
    value: Term
    source: Term


@dataclass(frozen=True, slots=True)
class Every:
    """`every key, value in source { body }`."""

    key: Var | None
    value: Var
    source: Term
    body: Body


@dataclass(frozen=True, slots=True)
class Negated:
    """A literal that holds if the inner one never does."""

    literal: Literal


@dataclass(frozen=True, slots=True)
class With:
    """A literal with a changed input: paths below `input`, and their values."""

    literal: Literal
    changes: tuple[tuple[tuple[str, ...], Term], ...]


Literal: TypeAlias = Holds | Unify | Assign | Some | SomeIn | Every | Negated | With
Body: TypeAlias = tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class RegoRule:
    """One head with one body; `otherwise` is the rule after `else`.

    `arguments`: of a function. `key`: of a partial rule.
    """

    name: str
    arguments: tuple[Term, ...] | None
    key: Term | None
    value: Term | None
    body: Body
    otherwise: RegoRule | None = None
    default: bool = False

    @property
    def is_set(self) -> bool:
        return self.key is not None and self.value is None


@dataclass(frozen=True, slots=True)
class Module:
    """Rules, the names that imports give to paths below `input` and `data`, and the version of the language."""

    rules: tuple[RegoRule, ...]
    imports: dict[str, Ref]
    version: int = 0


def children(node: Term | Literal) -> Iterator[Term | Literal]:
    """Return the parts of a term or literal, without the bodies inside it."""
    match node:
        case Ref(head, path):
            yield head
            yield from path
        case Call(arguments=items) | Array(items) | SetOf(items):
            yield from items
        case ObjectOf(pairs):
            for pair in pairs:
                yield from pair
        case Holds(term):
            yield term
        case Unify(left, right) | Assign(left, right):
            yield left
            yield right
        case SomeIn(key, value, source):
            yield from (key, value, source) if key is not None else (value, source)
        case Every(source=source):
            yield source
        case Negated(literal):
            yield literal
        case With(literal, changes):
            yield literal
            yield from (term for _, term in changes)


def variables(node: Term | Literal) -> set[str]:
    """Return the variables outside of inner bodies."""
    if isinstance(node, Var):
        return {node.name}
    return set().union(*(variables(child) for child in children(node)))


def closures(node: Term | Literal) -> Iterator[Collect | Every]:
    """Return the outermost comprehensions and `every`."""
    if isinstance(node, Collect | Every):
        yield node
    for child in children(node):
        yield from closures(child)


def is_known(name: str) -> bool:
    """Return whether a variable has a value from the start: it is the input or a rule."""
    return name in (INPUT, DATA) or name.startswith(RULE)
