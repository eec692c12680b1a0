"""The callers that policies of any dialect name, one at a time, with the text that names them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.ir import AccountsOf, Is, OneOf, Predicate, Suffix, atoms
from eastgate.ir.attributes import IDENTITY, MESH_NAME
from eastgate.ir.service_accounts import account_of
from eastgate.ir.spiffe import SCHEME, trust_domain_of
from eastgate.ir.symbolic.names import parse_account_name
from eastgate.reports.lint.hooks import statements_of
from eastgate.reports.lint.inventory import Policy
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class Caller:
    """One client that a policy names: an account, all of a namespace (`*`), or an identity that is neither.

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
        """Return the ways to write it, the most exact first."""
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
