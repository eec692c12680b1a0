"""Finds rules that depend on themselves, which OPA refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eastgate.dialects.kuadrant.rego.syntax import (
    RULE,
    Call,
    Collect,
    Every,
    RegoRule,
    UnsupportedModule,
    Var,
    children,
)


def check_recursion(rules: Mapping[str, tuple[RegoRule, ...]]) -> None:
    """Raise UnsupportedModule where a rule depends on itself."""
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
