"""Walks a path through a value: the core of gjson."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.dialects.kuadrant.authorino.gjson.bounds import Budget, Pieces
from eastgate.dialects.kuadrant.authorino.gjson.jsontext import is_json, quoted
from eastgate.dialects.kuadrant.authorino.gjson.modifiers import MODIFIERS
from eastgate.dialects.kuadrant.authorino.gjson.paths import (
    PathStep,
    Query,
    SubPath,
    array_step,
    last_name,
    literal_at,
    modifier_at,
    object_step,
    split_at_pipe,
    sub_paths,
)
from eastgate.dialects.kuadrant.authorino.gjson.queries import glob_matches, query_matches
from eastgate.dialects.kuadrant.authorino.gjson.values import (
    CONTAINERS,
    DataValue,
    JsonKind,
    TextValue,
    Unterminated,
    Value,
    missing_value,
    parse_value,
)


def find(value: Value, path: str, budget: Budget) -> Value:
    """Return the value at a path.

    Each turn of the loop handles the part before a pipe; nested paths call this function again.
    """
    budget.enter()
    rest: str | None = path
    while rest is not None:
        budget.spend(1 + len(rest))
        value, rest = _before_pipe(value, rest, budget)
    budget.leave()
    return value


def _before_pipe(value: Value, path: str, budget: Budget) -> tuple[Value, str | None]:
    """Return the value at the path up to its first pipe, and the path after the pipe, if any."""
    if len(path) > 1 and path[0] in "@!":
        made = _modified(value, path, budget) if path[0] == "@" else _literal(path, budget)
        if made is not None:
            result, rest = made
            return result, rest[1:] if rest[:1] in ("|", ".") else None
    elif len(path) > 1 and path[0] in "[{":
        brackets = "[]" if path[0] == "[" else "{}"
        parts, after = sub_paths(path) or ((), "?")
        if after[:1] in ("", "|", "."):
            return _multipath(value, parts, brackets, budget), after[1:] if after else None
        path = after if parts else ""
    walk = _Walk(budget)
    if path.startswith(".."):
        walk.array(value.lines(), path[2:])
    elif (container := value.container()) is not None:
        walk.into(container, path)
    return walk.value, walk.pipe


def _modified(value: Value, path: str, budget: Budget) -> tuple[Value, str] | None:
    modifier = modifier_at(path)
    if modifier is None:
        return None
    name, argument, rest = modifier
    result = MODIFIERS[name](value, argument, budget)
    return (parse_value(budget.afford(result), budget) if isinstance(result, str) else result), rest


def _literal(path: str, budget: Budget) -> tuple[Value, str] | None:
    literal = literal_at(path)
    return None if literal is None else (parse_value(literal[0], budget), literal[1])


def _multipath(value: Value, parts: Iterable[SubPath], brackets: str, budget: Budget) -> Value:
    pieces = Pieces(budget)
    for part in parts:
        result = find(value, part.path, budget)
        if result.exists:
            pieces.add((_name(part) + ":" if brackets == "{}" else "") + (result.raw or "null"))
    return TextValue(JsonKind.OBJECT if brackets == "{}" else JsonKind.ARRAY, pieces.enclosed(brackets), budget)


def _name(part: SubPath) -> str:
    if not part.name:
        return quoted(last_name(part.path))
    return part.name if part.name[0] == '"' and is_json(part.name) else quoted(part.name)


class _Walk:
    """One walk into nested objects and arrays, up to the first pipe.

    `value` and `pipe` are set during the walk. The last found value stays set, even if the walk continues elsewhere.
    """

    __slots__ = ("_budget", "pipe", "value")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.value: Value = missing_value(budget)
        self.pipe: str | None = None

    def into(self, container: Value, path: str) -> bool:
        """Continue in an object or array; return whether the path was found there."""
        self._budget.enter()
        is_object = container.kind is JsonKind.OBJECT
        is_found = self._object(container, path) if is_object else self.array(container.walked(), path)
        self._budget.leave()
        return is_found

    def _object(self, container: Value, path: str) -> bool:
        step = object_step(path)
        self._follow(step)
        if not step.wild and isinstance(container, DataValue):
            exact = container.get(step.part)
            return exact is not None and self._member(exact, step)
        for key, member in container.members():
            name = key.string
            matches = glob_matches(name, step.part, self._budget) if step.wild else name == step.part
            if matches and self._member(member, step):
                return True
        return False

    def _member(self, member: Value, step: PathStep) -> bool:
        if step.rest is None:
            self.value = member
            return True
        return member.kind in CONTAINERS and self.into(member, step.rest)

    def _follow(self, step: PathStep) -> None:
        if step.pipe is not None:
            self.pipe = step.pipe

    def array(self, elements: Iterable[Value], path: str) -> bool:
        """Continue in the elements of an array; return whether the path was found there."""
        step = array_step(path)
        self._follow(step)
        try:
            return self._array(elements, step)
        except Unterminated:
            return False

    def _array(self, elements: Iterable[Value], step: PathStep) -> bool:
        if step.query is not None:
            return self._query(elements, step, step.query)
        if step.hashed:
            return step.part == "#" and self._hash(elements, step)
        if not (step.part.isascii() and step.part.isdigit()):
            return False
        index = int(step.part[-20:]) if step.part[:-20].strip("0") == "" else -1
        for at, element in enumerate(elements):
            if at == index:
                return self._member(element, step)
        return False

    def _hash(self, elements: Iterable[Value], step: PathStep) -> bool:
        """Count the elements for `#`. For `#.path` collect the value at the path in each of them."""
        if step.rest is None:
            self.value = parse_value(str(sum(1 for _ in elements)), self._budget)
            return True
        path, pipe = split_at_pipe(step.rest)
        if pipe is not None:
            self.pipe = pipe
        pieces = Pieces(self._budget)
        for element in elements:
            result = find(element, path, self._budget)
            if result.exists:
                pieces.add(result.raw)
        self.value = TextValue(JsonKind.ARRAY, pieces.enclosed("[]"), self._budget)
        return True

    def _query(self, elements: Iterable[Value], step: PathStep, query: Query) -> bool:
        """Find the first element that matches `#(...)`, or for `#(...)#` all of them, each with the rest of the path.

        If there is none, the walk continues, because another key may match an outer wildcard.
        """
        pieces = Pieces(self._budget)
        for element in elements:
            if not self._asked_for(element, query):
                continue
            result = element if step.rest is None else self._rest_of(element, step.rest)
            if not query.every:
                self.value = result
                return True
            if result.raw:
                pieces.add(result.raw)
        if query.every and not self.value.exists:
            self.value = TextValue(JsonKind.ARRAY, pieces.enclosed("[]"), self._budget)
        return False

    def _asked_for(self, element: Value, query: Query) -> bool:
        if element.kind in CONTAINERS:
            return query_matches(query, find(element, query.path, self._budget), self._budget)
        return query.path == "" and query_matches(query, element, self._budget)

    def _rest_of(self, element: Value, rest: str) -> Value:
        path, pipe = split_at_pipe(rest)
        if pipe is not None:
            self.pipe = pipe
        return find(element, path, self._budget)
