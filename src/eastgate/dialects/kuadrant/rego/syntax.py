"""The syntax tree of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.rego.values import Value

INPUT: Final = "input"
DATA: Final = "data"
RULE: Final = "rule "  # what the name of a variable begins with that stands for a rule of the module


class UnsupportedModule(Exception):  # noqa: N818 - what is wrong with a module, in words for its author
    """The module cannot be evaluated as OPA would."""


class UnsupportedVariable(UnsupportedModule):
    """A variable of a rule is not used as OPA asks for."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """null, a boolean, a number or a text. `odd`: an integer that is written `1.0` or `1e3`, which OPA keeps so."""

    value: Value
    odd: bool = False


@dataclass(frozen=True, slots=True)
class Var:
    """A variable, which each body gives a value; `_` has a new name each time."""

    name: str


@dataclass(frozen=True, slots=True)
class Ref:
    """A value and a way into it: `input.a[x]`. Its head is a variable, a call, or something written out."""

    head: Term
    path: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function, of the module or built in; operators are functions too."""

    name: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """An array written out."""

    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class SetOf:
    """A set written out."""

    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class ObjectOf:
    """An object written out."""

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
    """A term that must be there and not be false."""

    term: Term


@dataclass(frozen=True, slots=True)
class Unify:
    """`left = right`."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Assign:
    """`target := value`: the target's variables are new ones. `gives`: references in the value may give values too."""

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
    """Holds where the literal never does."""

    literal: Literal


@dataclass(frozen=True, slots=True)
class With:
    """A literal that sees another input: paths below `input`, and what is there."""

    literal: Literal
    changes: tuple[tuple[tuple[str, ...], Term], ...]


Literal: TypeAlias = Holds | Unify | Assign | Some | SomeIn | Every | Negated | With
Body: TypeAlias = tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class RegoRule:
    """One head with one body, and what is tried `otherwise`. `arguments`: of a function; `key`: of a partial rule."""

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
    """Rules, the names of paths below `input` and `data` that imports give, and the version of the language."""

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
    """Return the variables outside of bodies inside it."""
    if isinstance(node, Var):
        return {node.name}
    return set().union(*(variables(child) for child in children(node)))


def closures(node: Term | Literal) -> Iterator[Collect | Every]:
    """Return the comprehensions and `every` in it, outermost only."""
    if isinstance(node, Collect | Every):
        yield node
    for child in children(node):
        yield from closures(child)


def is_known(name: str) -> bool:
    """Return whether a variable has its value from the start: the input, or a rule."""
    return name in (INPUT, DATA) or name.startswith(RULE)
