"""Rules that no request can match in any place, and ports that no workload declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.dialects.linting import EmptyList, Finding, codes, locating
from eastgate.dialects.linting.context import unexposed_ports as unexposed
from eastgate.ir import AccountsOf, And, Computed, Is, Not, OneOf, Or, Predicate, Rule, Suffix, atoms
from eastgate.ir.attributes import IDENTITY, MESH_NAME, PORT
from eastgate.ir.spiffe import SCHEME, account_of, trust_domain_of
from eastgate.ir.symbolic.names import parse_account_name
from eastgate.reading.manifests.node import Node
from eastgate.reports.conditions import TWO_LINES, condition_text
from eastgate.reports.lint.inventory import Policy, PolicyInventory, statements_of
from eastgate.reports.lint.solving import contradiction, is_possible
from eastgate.settings import Settings

# The callers that policies of any dialect name, each with the text that names it.


@dataclass(frozen=True, slots=True)
class Caller:
    """One client that a policy names: an account, all accounts of a namespace (`*`), or another identity.

    `rule` is the text of the rule that names it.
    """

    identity: str
    span: Span | None
    namespace: str | None = None
    account: str | None = None
    trust_domain: str | None = None
    rule: Span | None = None

    @property
    def spellings(self) -> tuple[str, ...]:
        """Return the ways to write it. The most exact one comes first."""
        exact = (self.identity, self.identity.removeprefix(SCHEME))
        if self.namespace is None or self.account is None:
            return exact
        if self.account == "*":
            return f"{self.namespace}/*", f"{self.trust_domain}/ns/{self.namespace}/sa/*", *exact, self.namespace
        return *exact, f"{self.namespace}/{self.account}", self.account


def callers(policy: Policy, settings: Settings) -> Iterator[Caller]:
    """List every client that a policy names."""
    statements = statements_of(policy)
    for naming in statements.naming:
        for caller in callers_in(naming.when, naming.span, settings):
            yield replace(caller, rule=naming.rule)
    for named in statements.accounts:
        yield Caller(f"{named.namespace}/{named.account}", named.span, named.namespace, named.account)


def callers_in(predicate: Predicate, span: Span | None, settings: Settings) -> Iterator[Caller]:
    """List every client that a predicate names."""
    for atom in atoms(predicate):
        if isinstance(atom, Is):
            yield from _callers_of_atom(atom, span, settings)


def _callers_of_atom(atom: Is, span: Span | None, settings: Settings) -> Iterator[Caller]:
    match atom.attribute, atom.matcher:
        case attribute, OneOf(values) if attribute == IDENTITY:
            yield from (_spiffe(str(value), span) for value in sorted(values, key=str))
        case attribute, AccountsOf(domain, namespace) if attribute == IDENTITY:
            yield Caller(f"{namespace}/*", span, namespace, "*", domain)
        case attribute, OneOf(values) if attribute == MESH_NAME:
            yield from (_mesh(str(value), span, settings) for value in sorted(values, key=str))
        case attribute, Suffix(text) if attribute == MESH_NAME:
            yield _mesh(f"*{text}", span, settings)


def _spiffe(identity: str, span: Span | None) -> Caller:
    match account_of(identity):
        case domain, namespace, account:
            return Caller(identity, span, namespace, account, domain)
        case None:
            return Caller(identity, span, trust_domain=trust_domain_of(identity))


def _mesh(name: str, span: Span | None, settings: Settings) -> Caller:
    """Read a name in Linkerd's form, `account.namespace.serviceaccount.identity.<control plane>.<domain>`."""
    if name.startswith("spiffe://"):
        return _spiffe(name, span)
    parts = parse_account_name(name)
    if parts is None or "." in parts.account:
        return Caller(name, span)
    own = settings.mesh_name(parts.namespace, parts.account) == name
    domain = settings.trust_domain if own else parts.tail.partition(".")[2]
    return Caller(name, span, parts.namespace, parts.account, domain)


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
        message = f"{rule.origin} matches nothing: this list is empty"
        help_ = "leave the field out to match anything, or add entries"
        yield Finding(codes.MATCHES_NOTHING, message, span, help_, subjects)
    elif empty_list is not None and any(_is_empty(part) for part in _every(rule.when)):
        span = _empty_node(policy.span, rule.origin.span) or rule.origin.span
        message = f"{rule.origin} {empty_list.outcome}: this list is empty"
        yield Finding(empty_list.code, message, span, empty_list.help, subjects)
    elif not is_possible(rule.when):
        message = f"{rule.origin} can never match: {_contradiction_text(rule.when)} cannot all hold"
        yield Finding(codes.CONTRADICTION, message, rule.origin.span, "write one rule for each", subjects)


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
    """Yield a predicate and all of its parts."""
    yield predicate
    for part in predicate.parts if isinstance(predicate, And | Or) else ():
        yield from _every(part)


def _is_empty(predicate: Predicate) -> bool:
    """Return whether a predicate comes from an empty list, which matches nothing."""
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
    """Report ports in rules that no selected workload declares."""
    for policy in inventory.policies:
        rules = statements_of(policy).rules
        yield from unexposed(policy, [port for rule in rules for port in _ports(policy, rule)], inventory)


def _ports(policy: Policy, rule: Rule) -> Iterator[tuple[int | str, Callable[[], Span | None]]]:
    for atom in atoms(rule.when):
        if isinstance(atom, Is) and atom.attribute == PORT and isinstance(atom.matcher, OneOf):
            for port in sorted(atom.matcher.values, key=str):
                texts = dict.fromkeys((port, str(port)))
                yield port, partial(locating.scalar, policy.span, rule.origin.part(PORT), texts, rule=rule.origin.span)
