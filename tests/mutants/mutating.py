"""The small errors: each site of a module that can have one, and the module with one error."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

__all__ = ["Mutant", "mutants_of", "mutated"]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_WORDS = {"__str__", "__repr__", "__reduce__"}  # text for people has tests of its own

Change = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One error: the file, the number of the site in it, the function and its first line, the line, and the change.

    `repeated` is the number of equal changes earlier in the function.
    """

    file: Path
    number: int
    function: str
    starts: int
    line: int
    change: str
    repeated: int

    @property
    def key(self) -> str:
        """Return a name that stays valid until the function changes, wherever it moves in the file."""
        again = f" (again, {self.repeated})" if self.repeated else ""
        return f"{self.file.parent.name}/{self.file.name} {self.function}: {self.change}{again}"

    def __str__(self) -> str:
        return f"{self.key}  [line {self.line}]"


def mutants_of(file: Path) -> list[Mutant]:
    """Return every possible error in the functions of a module."""
    seen: Counter[tuple[str, str]] = Counter()
    mutants = []
    for number, site in enumerate(_sites(ast.parse(file.read_text(encoding="utf-8")))):
        repeated = seen[site.function, site.change]
        seen[site.function, site.change] += 1
        mutants.append(Mutant(file, number, site.function, site.starts, site.line, site.change, repeated))
    return mutants


def mutated(source: str, number: int) -> ast.Module:
    """Return a module with one error."""
    tree = ast.parse(source)
    next(islice(_sites(tree), number, None)).make()
    return ast.fix_missing_locations(tree)


@dataclass(frozen=True, slots=True)
class _Site:
    function: str
    starts: int
    line: int
    change: str
    make: Change


def _sites(tree: ast.Module) -> Iterator[_Site]:
    for name, function in _functions(tree):
        starts = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
        for parent in _code(function):
            for child, replace in _children(parent):
                for new in (*_wrong_expressions(child), *_wrong_statements(child)):
                    line = getattr(child, "lineno", getattr(parent, "lineno", starts))
                    change = f"{_text(child)}  ->  {_text(new)}"
                    yield _Site(name, starts, line, change, partial(replace, new))


def _functions(node: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield each function that is not inside another one, with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and child.name not in _WORDS:
            yield within + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{within}{child.name}.")


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:100]


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run, in order."""
    yield node
    for child, _ in _children(node):
        yield from _code(child)


def _children(node: ast.AST) -> Iterator[tuple[ast.AST, Callable[[ast.AST], None]]]:
    """Yield each child of a node and its setter, except types, text for people, assertions and imports."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "defaults", "kw_defaults"):
            continue
        children = value if isinstance(value, list) else [value]
        if isinstance(node, ast.Call) and name == "args" and ast.unparse(node.func) in ("isinstance", "cast"):
            children = children[:1] if ast.unparse(node.func) == "isinstance" else []
        for index, child in enumerate(children):
            if isinstance(child, ast.AST) and not _is_left_alone(child):
                yield child, _setter(node, name, index if isinstance(value, list) else None)


def _is_left_alone(child: ast.AST) -> bool:
    return isinstance(child, ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr)


def _setter(parent: ast.AST, name: str, index: int | None) -> Callable[[ast.AST], None]:
    def replace(new: ast.AST) -> None:
        if index is None:
            setattr(parent, name, new)
        else:
            getattr(parent, name)[index] = new

    return replace


def _wrong_expressions(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in _COMPARISONS:
            yield ast.Compare(left, [_COMPARISONS[type(operator)]()], [right])
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.And() if isinstance(operator, ast.Or) else ast.Or(), values)
            yield values[0]
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            yield ast.BinOp(left, _OPERATORS[type(operator)](), right)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield ast.Constant(value + 1)
        case ast.Call(ast.Name(str() as name), arguments, keywords) if name in _CALLS:
            yield ast.Call(ast.Name(_CALLS[name], ast.Load()), arguments, keywords)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)


def _wrong_statements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.If(test, body, orelse) if not _is_guard_of_types(test):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.comprehension(target, iterated, [_, *_], is_async):
            yield ast.comprehension(target, iterated, [], is_async)
        case ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))


def _is_guard_of_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
