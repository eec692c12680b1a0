"""Whether every variable of a Rego module gets a value, which OPA checks before it evaluates and our engine does not.

Without the check, `allow { not user }` with a misspelt `user` would allow everybody. It errs on the safe side: a
module in which it cannot see where a variable gets its value is refused, and its author hears of it beforehand.

A variable gets a value from `x := ...`, `some x in ...`, a side of `x = ...`, a place in a reference (`list[x]`), or
as an argument of its function. Nothing gets a value inside `not`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from eastgate.authconfig.authorization.rego_tokens import Group, Item, RegoSyntax, Word, read, split

__all__ = ["safety_problem"]

_KEYWORDS: Final = frozenset(
    ("not", "some", "every", "in", "if", "else", "contains", "default", "import", "as", "with", "true", "false", "null")
)
_OPERAND_FOLLOWS: Final = frozenset(("in", "if", "else", "contains", "with", "as", "not", "some", "every", "default"))
_BASES: Final = frozenset(("input", "data"))

Names = frozenset[str]


def safety_problem(module: str) -> str | None:
    """What is wrong with the module before it is evaluated, in words for its author."""
    try:
        statements = _statements(read(module))
        rules = [rule for statement in statements for rule in _rules(statement)]
        names = _BASES | {rule.name for rule in rules} | {_imported(each) for each in statements if _is(each[0], "import")}
        for rule in rules:
            _check(rule, frozenset(names))
    except RegoSyntax as problem:
        return str(problem)
    return None


# Rules


@dataclass(frozen=True, slots=True)
class _Rule:
    """One head with one body."""

    name: str
    arguments: tuple[Item, ...]
    head: tuple[Item, ...]
    body: tuple[Item, ...]


def _statements(items: tuple[Item, ...]) -> list[tuple[Item, ...]]:
    """Lines, joined where one goes on: with `else`, or with what a sign at the end of a line waits for."""
    joined: list[tuple[Item, ...]] = []
    for line in split(items, ("\n", ";")):
        goes_on = joined and (_is(line[0], "else") or _waits(joined[-1][-1]) or _is_body(line[0]))
        if goes_on:
            joined[-1] += line
        else:
            joined.append(line)
    return joined


def _is_body(item: Item) -> bool:
    return isinstance(item, Group)


def _waits(item: Item) -> bool:
    return isinstance(item, Word) and (item.kind == "sign" or item.text in _OPERAND_FOLLOWS)


def _rules(statement: tuple[Item, ...]) -> Iterator[_Rule]:
    first = statement[0]
    if _is(first, "import"):
        return
    if _is(first, "default"):
        if len(statement) > 1 and _is(statement[1], "allow"):
            raise RegoSyntax("allow has the default false already; leave out `default allow`")
        statement = statement[1:]
    if not statement or not isinstance(statement[0], Word) or statement[0].kind != "name" or _is(statement[0], "package"):
        raise RegoSyntax("a rule begins with its name")
    name, rest, arguments = statement[0].text, statement[1:], ()
    if rest and isinstance(rest[0], Group) and rest[0].open == "(":
        arguments, rest = rest[0].items, rest[1:]
    for head, body in _branches(rest):
        yield _Rule(name, arguments, head, body)


def _branches(items: tuple[Item, ...]) -> Iterator[tuple[tuple[Item, ...], tuple[Item, ...]]]:
    """Heads and bodies: `head { body } { body } else = head { body }`, or `head if expression`."""
    head: list[Item] = []
    waiting = any_body = False
    for at, item in enumerate(items):
        if isinstance(item, Group) and item.open == "{" and not waiting:
            yield tuple(head), item.items
            any_body = True
            continue
        if _is(item, "if"):
            rest = items[at + 1 :]
            if not rest or not isinstance(rest[0], Group) or rest[0].open != "{" or len(rest) > 1 and not _is(rest[1], "else"):
                body, *others = split(rest, ("else",)) or [()]
                if others:
                    raise RegoSyntax("write the conditions before `else` in braces")
                yield tuple(head), body
                return
            waiting = False
            continue
        if _is(item, "else"):
            head = []
        else:
            head.append(item)
        waiting = _waits(item) and not _is(item, "else")
    if not any_body:
        yield tuple(head), ()


def _imported(statement: tuple[Item, ...]) -> str:
    words = [item.text for item in statement if isinstance(item, Word) and item.kind == "name"]
    return words[-1]


def _check(rule: _Rule, names: Names) -> None:
    arguments = frozenset(_variables(rule.arguments))
    safe = _safe_in(rule.body, names | arguments)
    left = _unsafe(rule.body, names | arguments) | _unsafe_in(_operands(rule.head), safe)
    if left:
        raise RegoSyntax(f"the variable {min(left)} of the rule {rule.name} has no value")


def _operands(head: tuple[Item, ...]) -> tuple[Item, ...]:
    """The head as an expression: `[key]` after the name is one, not a place in a reference."""
    return (Word("sign", ","), *head)


# Bodies


def _expressions(body: tuple[Item, ...]) -> list[tuple[Item, ...]]:
    joined: list[tuple[Item, ...]] = []
    for line in split(body, ("\n", ";")):
        if joined and (_waits(joined[-1][-1]) or (isinstance(line[0], Word) and line[0].kind == "sign")):
            joined[-1] += line
        else:
            joined.append(line)
    return joined


def _unsafe(body: tuple[Item, ...], outer: Names) -> Names:
    """The variables of a body that have no value."""
    safe = _safe_in(body, outer)
    left: Names = frozenset()
    for expression in _expressions(body):
        left |= _unsafe_in(_without_binding(expression), safe)
    return left


def _safe_in(body: tuple[Item, ...], outer: Names) -> Names:
    """The variables that have a value inside a body: those around it, and what its expressions give values to."""
    expressions = _expressions(body)
    safe = outer - {name for each in expressions for name in _declared(each)}
    while True:
        found = safe.union(*(_bound(each, safe) for each in expressions), safe)
        if found == safe:
            return safe
        safe = found


def _declared(expression: tuple[Item, ...]) -> Iterator[str]:
    """What `some` and `:=` make a name of this body, whatever it is outside."""
    if _is(expression[0], "some"):
        yield from _variables(_before(expression[1:], "in"))
    elif (at := _index(expression, ":=")) is not None:
        yield from _variables(expression[:at])


def _bound(expression: tuple[Item, ...], safe: Names) -> Names:
    if _is(expression[0], "not") or _is(expression[0], "every"):
        return frozenset()
    if _is(expression[0], "some"):
        at = _index(expression, "in")
        if at is None or _unsafe_in(expression[at + 1 :], safe):
            return frozenset()
        return frozenset(_variables(expression[1:at]))
    bound = frozenset(_places(expression, safe))
    for sign, sides in ((":=", 1), ("=", 2)):
        at = _index(expression, sign)
        if at is None:
            continue
        left, right = expression[:at], expression[at + 1 :]
        if not _unsafe_in(right, safe | bound) and _is_pattern(left):
            bound |= frozenset(_variables(left))
        if sides == 2 and not _unsafe_in(left, safe | bound) and _is_pattern(right):
            bound |= frozenset(_variables(right))
    return bound


def _without_binding(expression: tuple[Item, ...]) -> tuple[Item, ...]:
    """An expression whose variables must all have values; the names after a bare `some` need none."""
    if _is(expression[0], "some") and _index(expression, "in") is None:
        return ()
    return expression


def _is_pattern(items: tuple[Item, ...]) -> bool:
    """A variable, or an array or object that is taken apart: not a call or a reference."""
    match items:
        case (Word("name"),):
            return True
        case (Group("[" | "{", inner),):
            return all(_is_pattern(part[-1:]) or not _variables(part) for part in split(inner, (",",)))
        case (Word("text" | "number"),):
            return True
        case _:
            return False


def _places(items: tuple[Item, ...], safe: Names) -> Iterator[str]:
    """Variables in brackets after something that has a value: `input.list[x]`."""
    base_safe = False
    for at, item in enumerate(items):
        if isinstance(item, Word):
            if item.kind == "name" and not (at and _is(items[at - 1], ".")):
                base_safe = item.text in safe
            elif item.text != "." and item.kind != "name":
                base_safe = False
            continue
        if item.open == "[" and item.touches and base_safe and _is_pattern(item.items):
            yield from _variables(item.items)
        if not (item.open != "(" and _is_comprehension(item, items[at - 1] if at else None)):
            yield from _places(item.items, safe)
        if item.open == "(":
            base_safe = True


def _unsafe_in(items: tuple[Item, ...], safe: Names) -> Names:
    """The variables of an expression that have no value."""
    if items and _is(items[0], "every"):
        return _unsafe_every(items, safe)
    left: set[str] = set()
    for at, item in enumerate(items):
        before = items[at - 1] if at else None
        if isinstance(item, Group):
            left |= _unsafe_group(item, before, safe)
        elif _is_variable(items, at) and item.text not in safe:
            left.add(item.text)
    return frozenset(left)


def _unsafe_every(items: tuple[Item, ...], safe: Names) -> Names:
    at = _index(items, "in")
    if at is None or not isinstance(items[-1], Group):
        raise RegoSyntax("`every` is written `every x in list { ... }`")
    names = frozenset(_variables(items[1:at]))
    return _unsafe_in(items[at + 1 : -1], safe) | _unsafe(items[-1].items, safe | names)


def _unsafe_group(group: Group, before: Item | None, safe: Names) -> Names:
    if not _is_comprehension(group, before):
        return _unsafe_in(group.items, safe)
    at = _index(group.items, "|")
    head, body = group.items[:at], group.items[(at or 0) + 1 :]
    return _unsafe(body, safe) | _unsafe_in(head, _safe_in(body, safe))


def _is_comprehension(group: Group, before: Item | None) -> bool:
    operand = before is None or (isinstance(before, Word) and (before.kind != "name" or before.text in _KEYWORDS))
    return group.open in ("[", "{") and (operand or not group.touches) and _index(group.items, "|") is not None


# Words


def _is(item: Item, text: str) -> bool:
    return isinstance(item, Word) and item.text == text and item.kind in ("name", "sign")


def _index(items: tuple[Item, ...], text: str) -> int | None:
    return next((at for at, item in enumerate(items) if _is(item, text)), None)


def _before(items: tuple[Item, ...], text: str) -> tuple[Item, ...]:
    at = _index(items, text)
    return items if at is None else items[:at]


def _variables(items: tuple[Item, ...]) -> set[str]:
    """All variables, also those in brackets."""
    found = {item.text for at, item in enumerate(items) if isinstance(item, Word) and _is_variable(items, at)}
    return found.union(*(_variables(item.items) for item in items if isinstance(item, Group)), found)


def _is_variable(items: tuple[Item, ...], at: int) -> bool:
    """A name that is no keyword, no field after a dot, and not the name of a function that is called."""
    item = items[at]
    if not isinstance(item, Word) or item.kind != "name" or item.text in _KEYWORDS or (at and _is(items[at - 1], ".")):
        return False
    end = at + 1
    while end + 1 < len(items) and _is(items[end], "."):
        end += 2
    return not (end < len(items) and isinstance(items[end], Group) and _called(items[end]))


def _called(item: Item) -> bool:
    return isinstance(item, Group) and item.open == "(" and item.touches
