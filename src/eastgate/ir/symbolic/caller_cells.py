"""The cells of callers in one mesh, and what atoms say of all callers of a cell."""

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
_OTHER = "_other_"  # a name that an account may have and nobody has


class CallerCells:
    """The cells of callers in one mesh, and what atoms say of all callers of a cell."""

    def __init__(self, naming: MeshNaming) -> None:
        self.names = MeshNames(naming)
        self.domain = self.names.trust_domain
        self._tail = self.names.tail
        self._apart: frozenset[CallerCell] = frozenset()

    def tell_apart(self, cells: Iterable[CallerCell]) -> None:
        """Let these be all the cells that there are, so that the accounts with a cell of their own are in no other."""
        self._apart = frozenset(cells)

    # Which cells there are

    def cells(self, asked: Iterable[Is], known: Iterable[str] = (), *, with_names: bool = False) -> list[CallerCell]:
        """Return all cells that these atoms tell apart, and one for each of the known identities.

        `with_names`: also those of callers who have a name and no SPIFFE ID, where an atom looks at names.
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
        """Return the cells of callers whom Linkerd knows by SPIFFE IDs that an atom names, though accounts have these.

        Linkerd calls an account by another name: these are other callers, whose certificates have the SPIFFE ID.
        """
        if atom.attribute != MESH_NAME or not isinstance(atom.matcher, OneOf):
            return []
        names = (str(value) for value in atom.matcher.values)
        return [Name(name) for name in names if name.startswith(SCHEME) and self.names.account(name) is not None]

    def cell_of_name(self, mesh_name: str) -> CallerCell:
        """Return the cell of the caller whom Linkerd calls so."""
        identity = mesh_name if mesh_name.startswith(SCHEME) else self.names.identity(mesh_name)
        return IdentityCell(identity) if identity is not None else Name(mesh_name)

    def representative(self, cell: CallerCell) -> tuple[str | None, str | None]:
        """Return the SPIFFE ID and the name of one caller of a cell."""
        identity, name = cell.example(_OTHER)
        return identity, name if name is not None or identity is None else self.names.mesh_name(identity)

    # What an atom says of all callers of a cell

    def settle(self, atom: Is, cell: CallerCell) -> Predicate:
        """Return the atom for callers of a cell: ALWAYS, NEVER, or what still has to be asked of them."""
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
        """Return ALWAYS or NEVER where a regular expression matches all identities of a cell, or none; None: some."""
        named = names_in(pattern)  # of all that have a cell of their own, only these can make a difference
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
                return NEVER  # whom an atom names has a cell
            case Prefix(text) if text.startswith(SCHEME):
                return NEVER
            case _:
                return atom

    # Classes of cells

    def classes(self, cells: Iterable[CallerCell], asked: Iterable[Is | Computed]) -> list[list[CallerCell]]:
        """Group cells that none of these atoms tells apart."""
        signatures = _Signatures(self, asked)
        if signatures.computed:
            return [[cell] for cell in cells]  # a test of its own may tell any two apart
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
            return NEVER  # whom an atom names has a cell
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
    """Tells which of many atoms hold for a cell without asking each: what is exact is looked up."""

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
        """Return something that is equal for two cells that no atom tells apart."""
        if isinstance(cell, AnonymousCell):
            return None
        identity, name = self._callers.representative(cell)
        account = account_of(identity) if identity is not None else None
        keys: Sequence[Hashable] = ((IDENTITY, identity), (MESH_NAME, name), account[:2] if account else None)
        exact = tuple(tuple(self._exact.get(key, ())) for key in keys)
        return exact, tuple(self._callers.settle(atom, cell) for atom in self._ranges)
