"""Who may be calling, in as many cells as a proxy can tell apart.

A proxy knows a caller by one text: the SPIFFE ID in its certificate, or that it has none. What Linkerd calls a service
account follows from it. Every identity that the world knows or a policy names is a cell of its own; all the others fall
into few: another account of a namespace, another account of the trust domain, a stranger, nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from eastgate.policy import ALWAYS, NEVER, AccountsOf, Is, OneOf, Predicate, Prefix, Present, Suffix
from eastgate.policy.attributes import IDENTITY, MESH_NAME
from eastgate.settings import Settings
from eastgate.world import account_of, service_account_id

__all__ = ["AccountOf", "ByCaller", "Caller", "Known", "Naming", "Nobody", "OtherAccount", "Stranger"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known:
    """One identity."""

    identity: str

    def __str__(self) -> str:
        return self.identity


@dataclass(frozen=True, slots=True)
class AccountOf:
    """Any service account of a namespace that is not known."""

    domain: str
    namespace: str

    def __str__(self) -> str:
        return service_account_id(self.domain, self.namespace, "*")


@dataclass(frozen=True, slots=True)
class OtherAccount:
    """Any service account of the trust domain, in a namespace that nobody mentions."""

    domain: str

    def __str__(self) -> str:
        return service_account_id(self.domain, "*", "*")


@dataclass(frozen=True, slots=True)
class Stranger:
    """Anyone else who has an identity."""

    def __str__(self) -> str:
        return "spiffe://*"


@dataclass(frozen=True, slots=True)
class Nobody:
    """A caller without an identity."""

    def __str__(self) -> str:
        return "none"


Caller = Known | AccountOf | OtherAccount | Stranger | Nobody


@dataclass(frozen=True, slots=True)
class ByCaller(Generic[T]):
    """Something for every caller there can be: the narrowest cell counts."""

    known: dict[str, T]
    accounts: dict[AccountOf, T]
    other_account: tuple[OtherAccount, T]
    stranger: T
    nobody: T

    def map(self, of: Callable[[Caller, T], T]) -> ByCaller[T]:
        """The same for every caller, with something else."""
        other, one = self.other_account
        return ByCaller(
            {identity: of(Known(identity), one) for identity, one in self.known.items()},
            {cell: of(cell, one) for cell, one in self.accounts.items()},
            (other, of(other, one)),
            of(Stranger(), self.stranger),
            of(Nobody(), self.nobody),
        )

    def cell(self, identity: str | None) -> Caller:
        """The narrowest cell of a caller."""
        if identity is None:
            return Nobody()
        if identity in self.known:
            return Known(identity)
        found = account_of(identity)
        if found is None:
            return Stranger()
        account = AccountOf(found[0], found[1])
        if account in self.accounts:
            return account
        other = self.other_account[0]
        return other if found[0] == other.domain else Stranger()

    def items(self) -> Iterator[tuple[Caller, T]]:
        """Every cell."""
        yield from ((Known(identity), one) for identity, one in self.known.items())
        yield from self.accounts.items()
        yield self.other_account
        yield Stranger(), self.stranger
        yield Nobody(), self.nobody


@dataclass(slots=True)
class Naming:
    """Which identity has which name in Linkerd, and which cells there are."""

    settings: Settings
    domain: str = field(init=False)
    _tail: str = field(init=False)  # of a Linkerd name, behind account and namespace

    def __post_init__(self) -> None:
        self.domain = self.settings.trust_domain
        self._tail = self.settings.mesh_name("", "")[1:]

    def account(self, identity: str) -> tuple[str, str] | None:
        """Namespace and name, where the identity is of a service account of the trust domain."""
        found = account_of(identity)
        return found[1:] if found is not None and found[0] == self.domain else None

    def mesh_name(self, identity: str) -> str:
        """What Linkerd calls it."""
        account = self.account(identity)
        return self.settings.mesh_name(*account) if account is not None else identity

    def identity(self, mesh_name: str) -> str | None:
        """Whom Linkerd calls so; None where no caller has that name."""
        if mesh_name.startswith("spiffe://"):
            return mesh_name if self.account(mesh_name) is None else None
        account, dot, namespace = mesh_name.removesuffix(self._tail).rpartition(".")
        if not mesh_name.endswith(self._tail) or not dot or not account:
            return None
        return service_account_id(self.domain, namespace, account)

    # Cells

    def cells(self, asked: Iterable[Is], known: Iterable[str] = ()) -> list[Caller]:
        """All cells that these atoms tell apart, and one for each of the known identities."""
        identities = set(known)
        accounts: set[AccountOf] = set()
        for atom in asked:
            if atom.attribute == IDENTITY:
                self._named(atom, identities, accounts)
            elif atom.attribute == MESH_NAME:
                self._called(atom, identities, accounts)
        cells: list[Caller] = [Known(identity) for identity in sorted(identities)]
        cells += sorted(accounts, key=str)
        return [*cells, OtherAccount(self.domain), Stranger(), Nobody()]

    def _named(self, atom: Is, identities: set[str], accounts: set[AccountOf]) -> None:
        match atom.matcher:
            case OneOf(values):
                identities.update(str(value) for value in values)
            case AccountsOf(domain, namespace):
                accounts.add(AccountOf(domain, namespace))

    def _called(self, atom: Is, identities: set[str], accounts: set[AccountOf]) -> None:
        match atom.matcher:
            case OneOf(values):
                found = (self.identity(str(value)) for value in values)
                identities.update(identity for identity in found if identity is not None)
            case Suffix(text) if text.endswith(self._tail) and text != self._tail:
                namespace = text.removesuffix(self._tail).rpartition(".")[2]
                accounts.add(AccountOf(self.domain, namespace))

    def by_caller(self, cells: Iterable[Caller], of: dict[Caller, T]) -> ByCaller[T]:
        """What was found for the cells, as a whole."""
        return ByCaller(
            {cell.identity: of[cell] for cell in cells if isinstance(cell, Known)},
            {cell: of[cell] for cell in cells if isinstance(cell, AccountOf)},
            (OtherAccount(self.domain), of[OtherAccount(self.domain)]),
            of[Stranger()],
            of[Nobody()],
        )

    # What an atom says of all callers of a cell

    def settle(self, atom: Is, caller: Caller) -> Predicate:
        """The atom for callers of a cell: ALWAYS, NEVER, or what still has to be asked of the identity."""
        if isinstance(caller, Nobody):
            return NEVER
        if isinstance(caller, Known):
            value = caller.identity if atom.attribute == IDENTITY else self.mesh_name(caller.identity)
            return ALWAYS if atom.matcher.contains(value) else NEVER
        if isinstance(atom.matcher, Present):
            return ALWAYS
        if atom.attribute == IDENTITY or isinstance(caller, Stranger):
            return self._settle_identity(atom, caller)
        return self._settle_name(atom, caller)

    def _settle_identity(self, atom: Is, caller: Caller) -> Predicate:
        match atom.matcher:
            case OneOf():
                return NEVER  # whom somebody names is known
            case AccountsOf(domain, namespace):
                return ALWAYS if caller == AccountOf(domain, namespace) else NEVER
            case Prefix("spiffe://"):
                return ALWAYS
            case _:
                return Is(IDENTITY, atom.matcher)

    def _settle_name(self, atom: Is, caller: AccountOf | OtherAccount) -> Predicate:
        """An account of the trust domain is called `<account>.<namespace><tail>`, others by their identity."""
        if caller.domain != self.domain:
            return self._settle_identity(atom, caller)
        match atom.matcher:
            case Suffix(text) if self._tail.endswith(text):
                return ALWAYS
            case Suffix(text) if text.endswith(self._tail) and isinstance(caller, AccountOf):
                account, _, namespace = text.removesuffix(self._tail).rpartition(".")
                if namespace != caller.namespace:
                    return NEVER
                return Is(IDENTITY, Suffix(account)) if account else ALWAYS
            case _:
                return NEVER
