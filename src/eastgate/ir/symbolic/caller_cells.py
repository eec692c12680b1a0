"""The caller cells of one mesh, and the evaluation of atoms for all callers of a cell."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from eastgate.ir import (
    ALWAYS,
    NEVER,
    AccountsOf,
    AnyAccount,
    Computed,
    Is,
    Matcher,
    OneOf,
    Predicate,
    Prefix,
    Present,
    Suffix,
)
from eastgate.ir.attributes import IDENTITY, MESH_NAME
from eastgate.ir.spiffe import SCHEME, account_of, service_account_id
from eastgate.ir.symbolic.account_patterns import matches_all, names_in
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    AnonymousCell,
    CallerCell,
    IdentityCell,
    Name,
    NamesUnder,
    OtherAccounts,
    OtherIdentities,
    OtherNames,
)
from eastgate.ir.symbolic.names import MeshNames, MeshNaming

CALLER_ATTRIBUTES = frozenset({IDENTITY, MESH_NAME})
_UNUSED_NAME = "_other_"  # a valid account name that no account has


class CallerCells:
    """The caller cells of one mesh, and the evaluation of atoms for all callers of a cell."""

    def __init__(self, naming: MeshNaming) -> None:
        self.names = MeshNames(naming)
        self.domain = self.names.trust_domain
        self._tail = self.names.tail
        self._apart: frozenset[CallerCell] = frozenset()

    def tell_apart(self, cells: Iterable[CallerCell]) -> None:
        """Set the complete list of cells. An account with its own cell belongs to no other cell."""
        self._apart = frozenset(cells)

    # List of cells

    def cells(self, asked: Iterable[Is], known: Iterable[str] = (), *, with_names: bool = False) -> list[CallerCell]:
        """Return all cells that these atoms distinguish, and one cell for each known identity.

        `with_names`: also cells of callers with a name but no SPIFFE ID, if an atom reads names.
        """
        atoms = list(dict.fromkeys(atom for atom in asked if atom.attribute in CALLER_ATTRIBUTES))
        cells: set[CallerCell] = set(map(IdentityCell, known))
        for atom in atoms:
            cells.update(self.named_by(atom))
        identities = sorted((cell for cell in cells if isinstance(cell, IdentityCell)), key=str)
        accounts = sorted((cell for cell in cells if isinstance(cell, AccountsIn)), key=str)
        others: list[CallerCell] = [OtherAccounts(self.domain), OtherIdentities()]
        if with_names and any(atom.attribute == MESH_NAME for atom in atoms):
            cells.update(cell for atom in atoms for cell in self.literally_named_by(atom))
            others += sorted((cell for cell in cells if isinstance(cell, Name | NamesUnder)), key=str)
            others.append(OtherNames())
        return [*identities, *accounts, *others, AnonymousCell()]

    def named_by(self, atom: Is) -> list[CallerCell]:
        """Return the cells that an atom names."""
        in_mesh = atom.attribute == MESH_NAME
        match atom.matcher:
            case OneOf(values):
                return [self.cell_of_name(str(value)) if in_mesh else IdentityCell(str(value)) for value in values]
            case AccountsOf(domain, namespace):
                return [AccountsIn(domain, namespace)]
            case (Prefix() | Suffix()) as matcher if not in_mesh:
                return self.named_by_pattern(_pattern_of(matcher))
            case Suffix(text) if in_mesh:
                parts = self.names.parts(text)
                return [AccountsIn(self.domain, parts[1]) if parts and parts[1] else NamesUnder(text)]
            case _:
                return []

    def named_by_pattern(self, pattern: str) -> list[CallerCell]:
        """Return the cells of accounts of the trust domain that a regular expression for identities names."""
        cells: list[CallerCell] = []
        for namespace, name in names_in(pattern):
            cells.append(AccountsIn(self.domain, namespace))
            if name is not None and account_of(identity := service_account_id(self.domain, namespace, name)):
                cells.append(IdentityCell(identity))
        return cells

    def literally_named_by(self, atom: Is) -> list[CallerCell]:
        """Return the cells of callers whose Linkerd name is the SPIFFE ID of an account, if an atom names this ID.

        Linkerd gives the account itself another name. So these callers are not the account: they have a certificate
        with its SPIFFE ID.
        """
        if atom.attribute != MESH_NAME or not isinstance(atom.matcher, OneOf):
            return []
        names = (str(value) for value in atom.matcher.values)
        return [Name(name) for name in names if name.startswith(SCHEME) and self.names.account(name) is not None]

    def cell_of_name(self, mesh_name: str) -> CallerCell:
        """Return the cell of the caller with this Linkerd name."""
        identity = mesh_name if mesh_name.startswith(SCHEME) else self.names.identity(mesh_name)
        return IdentityCell(identity) if identity is not None else Name(mesh_name)

    def representative(self, cell: CallerCell) -> tuple[str | None, str | None]:
        """Return the SPIFFE ID and the name of one caller of a cell."""
        identity, name = cell.example(_UNUSED_NAME)
        return identity, name if name is not None or identity is None else self.names.mesh_name(identity)

    # Evaluation of atoms

    def settle(self, atom: Is, cell: CallerCell) -> Predicate:
        """Return the atom for callers of a cell: ALWAYS, NEVER, or a condition that still depends on the caller."""
        match cell:
            case AnonymousCell():
                return NEVER
            case IdentityCell(identity):
                value = identity if atom.attribute == IDENTITY else self.names.mesh_name(identity)
                return ALWAYS if atom.matcher.contains(value) else NEVER
            case Name() if cell.identity is not None and atom.attribute == IDENTITY:
                return ALWAYS if atom.matcher.contains(cell.identity) else NEVER
            case Name() | NamesUnder() | OtherNames():
                return NEVER if atom.attribute == IDENTITY else _settle_name(atom, cell)
        if isinstance(atom.matcher, Present):
            return ALWAYS
        if atom.attribute == MESH_NAME and isinstance(cell, AccountsIn | OtherAccounts) and cell.domain == self.domain:
            return self._settle_account(atom, cell)
        if isinstance(atom.matcher, Prefix | Suffix) and isinstance(cell, AccountsIn | OtherAccounts):
            return self.settle_pattern(_pattern_of(atom.matcher), cell) or Is(IDENTITY, atom.matcher)
        return _settle_identity(atom, cell)

    def settle_pattern(self, pattern: str, cell: CallerCell) -> Predicate | None:
        """Return ALWAYS or NEVER if a regular expression matches all or no identities of a cell; None: some."""
        named = names_in(pattern)  # of the accounts with their own cells, only these matter
        match cell:
            case AccountsIn(domain, namespace):
                names = (name for _, name in named if name is not None)
                apart = (n for n in names if IdentityCell(service_account_id(domain, namespace, n)) in self._apart)
                matched = matches_all(pattern, (service_account_id(domain, namespace, ""), frozenset(apart)))
            case OtherAccounts(domain):
                apart = (name for name, _ in named if AccountsIn(domain, name) in self._apart)
                matched = matches_all(pattern, (f"{SCHEME}{domain}/ns/", frozenset(apart), "/sa/", frozenset()))
            case _:
                return None
        return None if matched is None else ALWAYS if matched else NEVER

    def _settle_account(self, atom: Is, cell: AccountsIn | OtherAccounts) -> Predicate:
        """Settle an atom on the names of accounts of the trust domain: `<account>.<namespace><tail>`."""
        match atom.matcher:
            case Suffix(text) if self._tail.endswith(text):
                return ALWAYS
            case Suffix(text) if isinstance(cell, AccountsIn) and (parts := self.names.parts(text)) is not None:
                account, namespace = parts
                if namespace != cell.namespace:
                    return NEVER
                return Is(IDENTITY, Suffix(account)) if account else ALWAYS
            case OneOf() | Suffix():
                return NEVER  # a caller that an atom names has its own cell
            case Prefix(text) if text.startswith(SCHEME):
                return NEVER
            case _:
                return atom

    # Classes of cells

    def classes(self, cells: Iterable[CallerCell], asked: Iterable[Is | Computed]) -> list[list[CallerCell]]:
        """Group cells that none of these atoms distinguishes."""
        signatures = _Signatures(self, asked)
        if signatures.computed:
            return [[cell] for cell in cells]  # a computed test may distinguish any two cells
        classes: dict[Hashable, list[CallerCell]] = defaultdict(list)
        for cell in cells:
            classes[signatures.of(cell)].append(cell)
        return list(classes.values())


def _pattern_of(matcher: Prefix | Suffix) -> str:
    text = re.escape(matcher.text)
    return f"{text}.*" if isinstance(matcher, Prefix) else f".*{text}"


def _settle_identity(atom: Is, cell: CallerCell) -> Predicate:
    match atom.matcher:
        case OneOf():
            return NEVER  # a caller that an atom names has its own cell
        case AccountsOf(domain, namespace):
            return ALWAYS if cell == AccountsIn(domain, namespace) else NEVER
        case AnyAccount(domain):
            return ALWAYS if isinstance(cell, AccountsIn | OtherAccounts) and cell.domain == domain else NEVER
        case Prefix(text) if text == SCHEME or cell.stem.startswith(text):
            return ALWAYS
        case _:
            return Is(IDENTITY, atom.matcher)


def _settle_name(atom: Is, cell: Name | NamesUnder | OtherNames) -> Predicate:
    match cell, atom.matcher:
        case _, Present():
            return ALWAYS
        case Name(name), matcher:
            return ALWAYS if matcher.contains(name) else NEVER
        case NamesUnder(suffix), Suffix(text):
            return ALWAYS if suffix.endswith(text) else NEVER
        case _, Prefix(text) if not text.startswith(SCHEME):
            return atom
        case _:
            return NEVER


class _Signatures:
    """Finds the atoms that hold for a cell. Exact values are looked up instead of evaluated one by one."""

    def __init__(self, callers: CallerCells, asked: Iterable[Is | Computed]) -> None:
        self._callers = callers
        self._ranges: list[Is] = []
        self._exact: dict[Hashable, list[int]] = defaultdict(list)
        self.computed = False
        for number, atom in enumerate(dict.fromkeys(asked)):
            if isinstance(atom, Computed):
                self.computed = self.computed or bool(atom.attributes & CALLER_ATTRIBUTES)
            elif atom.attribute in CALLER_ATTRIBUTES:
                self._file(number, atom, atom.matcher)

    def _file(self, number: int, atom: Is, matcher: Matcher) -> None:
        match matcher:
            case OneOf(values):
                for value in values:
                    self._exact[atom.attribute, value].append(number)
            case AccountsOf(domain, namespace) if atom.attribute == IDENTITY:
                self._exact[domain, namespace].append(number)
            case _:
                self._ranges.append(atom)

    def of(self, cell: CallerCell) -> Hashable:
        """Return a key that is equal for two cells that no atom distinguishes."""
        if isinstance(cell, AnonymousCell):
            return None
        identity, name = self._callers.representative(cell)
        account = account_of(identity) if identity is not None else None
        keys: Sequence[Hashable] = ((IDENTITY, identity), (MESH_NAME, name), account[:2] if account else None)
        exact = tuple(tuple(self._exact.get(key, ())) for key in keys)
        return exact, tuple(self._callers.settle(atom, cell) for atom in self._ranges)
