"""Whether every variable of a Rego module gets a value, which OPA checks before it evaluates and our engine does not.

Without the check, `allow { not user }` with a misspelt `user` would allow everybody. It errs on the safe side: a
module in which it cannot see where a variable gets its value is refused, and its author hears of it beforehand.

A variable gets a value from `x := ...`, `some x in ...`, a side of `x = ...`, a place in a reference (`list[x]`), or
as an argument of its function. Nothing gets a value inside `not`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eastgate.authconfig.authorization.rego_rules import Rule, imported, rules, statements
from eastgate.authconfig.authorization.rego_tokens import (
    KEYWORDS,
    Group,
    Item,
    RegoSyntax,
    Word,
    index_of,
    is_word,
    read,
    split,
    waits,
)

__all__ = ["safety_problem"]

_BASES: Final = frozenset(("input", "data"))

Names = frozenset[str]


def safety_problem(module: str) -> str | None:
    """What is wrong with the module before it is evaluated, in words for its author."""
    try:
        written = statements(read(module))
        found = [rule for statement in written for rule in rules(statement)]
        imports = {name for each in written if is_word(each[0], "import") for name in imported(each)}
        names = _BASES | imports | {rule.name for rule in found}
        for rule in found:
            _check(rule, names)
        _check_sets(found)
    except RegoSyntax as problem:
        return str(problem)
    return None


def _check(rule: Rule, names: Names) -> None:
    arguments = frozenset(_variables(rule.arguments))
    safe = _safe_in(rule.body, names | arguments)
    left = _unsafe(rule.body, names | arguments) | _unsafe_in(_operands(rule.head), safe)
    if left:
        raise RegoSyntax(f"the variable {min(left)} of the rule {rule.name} has no value")


def _check_sets(found: list[Rule]) -> None:
    """Our engine takes `deny[x] { ... }` for an object, as Rego 1 does: asked for anything but its keys, it differs."""
    sets = {rule.name for rule in found if _is_partial_set(rule)}
    for rule in found:
        for name in _whole_uses((*_operands(rule.head), Word("newline", ""), *rule.body), sets):
            raise RegoSyntax(
                f"write `{name} contains x if {{ ... }}` instead of `{name}[x] {{ ... }}` to use all of {name}"
            )


def _is_partial_set(rule: Rule) -> bool:
    keyed = bool(rule.head) and isinstance(rule.head[0], Group) and rule.head[0].open == "["
    return keyed and index_of(rule.head, "=") is None and index_of(rule.head, ":=") is None


def _whole_uses(items: tuple[Item, ...], names: set[str]) -> Iterator[str]:
    """Uses of these names other than `name[key]`, `name.key` and `count(name)`."""
    for at, item in enumerate(items):
        if isinstance(item, Group):
            counted = at > 0 and is_word(items[at - 1], "count") and len(item.items) == 1
            if not counted:
                yield from _whole_uses(item.items, names)
        elif item.kind == "name" and item.text in names and not (at and is_word(items[at - 1], ".")):
            after = items[at + 1] if at + 1 < len(items) else None
            keyed = isinstance(after, Group) and after.touches and after.open == "["
            if not keyed and not (after is not None and is_word(after, ".")):
                yield item.text


def _operands(head: tuple[Item, ...]) -> tuple[Item, ...]:
    """The head as an expression: `[key]` after the name is one, not a place in a reference."""
    return (Word("sign", ","), *head)


# Bodies


def _expressions(body: tuple[Item, ...]) -> list[tuple[Item, ...]]:
    joined: list[tuple[Item, ...]] = []
    for line in split(body, ("\n", ";")):
        if joined and (waits(joined[-1][-1]) or (isinstance(line[0], Word) and line[0].kind == "sign")):
            joined[-1] += line
        else:
            joined.append(line)
    return joined


def _unsafe(body: tuple[Item, ...], outer: Names) -> Names:
    """The variables of a body that have no value."""
    safe = _safe_in(body, outer)
    left: Names = frozenset()
    for expression in _expressions(body):
        # Each `_` is a variable of its own, so another one elsewhere gives it no value.
        left |= _unsafe_in(_without_binding(expression), safe - {"_"} if is_word(expression[0], "not") else safe)
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
    if is_word(expression[0], "some"):
        yield from _variables(_before(expression[1:], "in"))
    elif (at := index_of(expression, ":=")) is not None:
        yield from _variables(expression[:at])


def _bound(expression: tuple[Item, ...], safe: Names) -> Names:
    if is_word(expression[0], "not") or is_word(expression[0], "every"):
        return frozenset()
    if is_word(expression[0], "some"):
        at = index_of(expression, "in")
        if at is None or _unsafe_in(expression[at + 1 :], safe):
            return frozenset()
        return frozenset(_variables(expression[1:at]))
    bound = frozenset(_places(expression, safe))
    for sign, sides in ((":=", 1), ("=", 2)):
        at = index_of(expression, sign)
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
    if is_word(expression[0], "some") and index_of(expression, "in") is None:
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
            if item.kind == "name" and not (at and is_word(items[at - 1], ".")):
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
    if items and is_word(items[0], "every"):
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
    at = index_of(items, "in")
    if at is None or not isinstance(items[-1], Group):
        raise RegoSyntax("`every` is written `every x in list { ... }`")
    names = frozenset(_variables(items[1:at]))
    return _unsafe_in(items[at + 1 : -1], safe) | _unsafe(items[-1].items, safe | names)


def _unsafe_group(group: Group, before: Item | None, safe: Names) -> Names:
    if not _is_comprehension(group, before):
        return _unsafe_in(group.items, safe)
    at = index_of(group.items, "|")
    head, body = group.items[:at], group.items[(at or 0) + 1 :]
    return _unsafe(body, safe) | _unsafe_in(head, _safe_in(body, safe))


def _is_comprehension(group: Group, before: Item | None) -> bool:
    operand = before is None or (isinstance(before, Word) and (before.kind != "name" or before.text in KEYWORDS))
    return group.open in ("[", "{") and (operand or not group.touches) and index_of(group.items, "|") is not None


# Words


def _before(items: tuple[Item, ...], text: str) -> tuple[Item, ...]:
    at = index_of(items, text)
    return items if at is None else items[:at]


def _variables(items: tuple[Item, ...]) -> set[str]:
    """All variables, also those in brackets."""
    found = {item.text for at, item in enumerate(items) if isinstance(item, Word) and _is_variable(items, at)}
    return found.union(*(_variables(item.items) for item in items if isinstance(item, Group)), found)


def _is_variable(items: tuple[Item, ...], at: int) -> bool:
    """A name that is no keyword, no field after a dot, and not the name of a function that is called."""
    item = items[at]
    if (
        not isinstance(item, Word)
        or item.kind != "name"
        or item.text in KEYWORDS
        or (at and is_word(items[at - 1], "."))
    ):
        return False
    end = at + 1
    while end + 1 < len(items) and is_word(items[end], "."):
        end += 2
    return not (end < len(items) and isinstance(items[end], Group) and _called(items[end]))


def _called(item: Item) -> bool:
    return isinstance(item, Group) and item.open == "(" and item.touches
