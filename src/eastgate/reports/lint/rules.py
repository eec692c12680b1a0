"""Rules that no request can match, wherever they apply; and ports that no workload exposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects.linting import EmptyList, Finding, codes, locating
from eastgate.dialects.linting.ports import unexposed_ports as unexposed
from eastgate.ir import And, Computed, Is, Not, OneOf, Or, Predicate, Rule, atoms
from eastgate.ir.attributes import PORT
from eastgate.reading.manifests.node import Node
from eastgate.reports.conditions import TWO_LINES, condition_text
from eastgate.reports.lint.hooks import statements_of
from eastgate.reports.lint.inventory import Policy, PolicyInventory
from eastgate.reports.lint.solving import contradiction, is_possible


def find_impossible_rules(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report rules with an empty list, or with conditions that exclude each other."""
    for policy in inventory.policies:
        statements = statements_of(policy)
        for rule in statements.rules:
            yield from _impossible(policy, rule, statements.empty_list)


def _impossible(policy: Policy, rule: Rule, empty_list: EmptyList | None) -> Iterator[Finding]:
    subjects = (str(policy.ref),)
    if any(_is_empty(part) for part in _parts(rule.when)):
        span = _empty_node(policy.span, rule.origin.span) or rule.origin.span
        message = f"{rule.origin} matches nothing: there is nothing in this list"
        help_ = "leave the field out to match anything, or write what is meant"
        yield Finding(codes.MATCHES_NOTHING, message, span, help_, subjects)
    elif empty_list is not None and any(_is_empty(part) for part in _every(rule.when)):
        span = _empty_node(policy.span, rule.origin.span) or rule.origin.span
        message = f"{rule.origin} {empty_list.outcome}: there is nothing in this list"
        yield Finding(empty_list.code, message, span, empty_list.help, subjects)
    elif not is_possible(rule.when):
        message = f"{rule.origin} can never match: {_contradiction_text(rule.when)} cannot all hold"
        yield Finding(codes.CONTRADICTION, message, rule.origin.span, "write rules of their own", subjects)


def _contradiction_text(impossible: Predicate) -> str:
    wanted = contradiction(impossible)
    exact = condition_text(wanted, exact=True)
    return exact if len(exact) <= TWO_LINES else condition_text(wanted)


def _parts(predicate: Predicate) -> Iterator[Predicate]:
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from _parts(part)
    else:
        yield predicate


def _every(predicate: Predicate) -> Iterator[Predicate]:
    """Return a predicate, and all that it is made of."""
    yield predicate
    for part in predicate.parts if isinstance(predicate, And | Or) else ():
        yield from _every(part)


def _is_empty(predicate: Predicate) -> bool:
    """Return whether a predicate is the meaning of an empty list, which matches nothing."""
    match predicate:
        case Or(parts):
            return all(_is_empty(part) for part in parts)
        case And(parts):
            return any(_is_empty(part) for part in parts)
        case Is(_, OneOf(values)):
            return not values
        case Is() | Not() | Computed():
            return False


def _empty_node(document: Span, within: Span | None) -> Span | None:
    """Find the first empty list or mapping within a rule."""
    start = (within.line, within.column) if within else (0, 0)
    end = (within.end_line, within.end_column) if within else (1 << 60, 0)

    def walk(node: Node) -> Iterator[Span]:
        if node.value in ({}, []):
            span = node.span
            if start <= (span.line, span.column) and (span.end_line, span.end_column) <= end:
                yield span
        for child in node.value.values() if isinstance(node.value, dict) else node:
            yield from walk(child)

    return next(walk(locating.root_of(document)), None)


# Ports


def find_unexposed_ports(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report ports in rules that none of the workloads declares."""
    for policy in inventory.policies:
        rules = statements_of(policy).rules
        yield from unexposed(policy, [port for rule in rules for port in _ports(policy, rule)], inventory)


def _ports(policy: Policy, rule: Rule) -> Iterator[tuple[int | str, Callable[[], Span | None]]]:
    for atom in atoms(rule.when):
        if isinstance(atom, Is) and atom.attribute == PORT and isinstance(atom.matcher, OneOf):
            for port in sorted(atom.matcher.values, key=str):
                texts = dict.fromkeys((port, str(port)))
                yield port, partial(locating.scalar, policy.span, rule.origin.part(PORT), texts, rule=rule.origin.span)
