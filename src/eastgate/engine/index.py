"""Which of many rules matches first: found in a few dictionary look-ups, however many rules there are.

Nearly every rule says who (exact identities, or all accounts of a namespace) and on which ports; what else it
says (paths, methods) is left as a test. So rules are filed in tables by port, and in a table by identity:

    tables[port or any port]  ->  exact identity -> rank
                                  namespace stem -> rank
                                  everybody      -> rank

The rank of a rule is its place in the order; the smallest rank that matches wins. Without tests the smaller
ranks of wider entries are pushed down into the narrower ones when the index is built, so that a hit on the exact
identity is final and a look-up touches at most two tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from eastgate.policy import AccountsOf, And, Is, Matcher, Not, OneOf, Or, Predicate, Request
from eastgate.policy.attributes import IDENTITY, PORT, Attribute

__all__ = ["First", "Test", "build_first", "compile_test"]

First = Callable[[Request], int]
Test = Callable[[Request], bool]

_Ranks = tuple[dict[object, int], dict[str, int], int]  # exact identity, namespace stem, everybody

_WIDEST_RULE = 4096  # a rule with more identities x ports than this is filed under any port, with a test


@dataclass(frozen=True, slots=True)
class _Clause:
    """One rule, or one alternative of it, as the tables want it. None means anyone, or any port."""

    exact: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()
    anyone: bool = True
    ports: tuple[int, ...] | None = None
    rest: tuple[Predicate, ...] = ()


@dataclass(slots=True)
class _Table:
    """The entries of one port: who -> (rank, test or None), in the order of rank."""

    exact: dict[str, list[tuple[int, Test | None]]] = field(default_factory=dict)
    stems: dict[str, list[tuple[int, Test | None]]] = field(default_factory=dict)
    anyone: list[tuple[int, Test | None]] = field(default_factory=list)

    def add(self, clause: _Clause, entry: tuple[int, Test | None]) -> None:
        if clause.anyone:
            self.anyone.append(entry)
        for identity in clause.exact:
            self.exact.setdefault(identity, []).append(entry)
        for stem in clause.stems:
            self.stems.setdefault(stem, []).append(entry)


def build_first(rules: Sequence[Predicate]) -> First:
    """A function that gives the place of the first rule that matches a known request, or `len(rules)`."""
    tables: dict[int | None, _Table] = {None: _Table()}
    tested = False
    for rank, predicate in enumerate(rules):
        for clause in _clauses(predicate):
            test = compile_test(And(clause.rest)) if clause.rest else None
            tested = tested or test is not None
            for port in clause.ports if clause.ports is not None else (None,):
                table = tables.get(port)
                if table is None:
                    table = tables[port] = _Table()
                table.add(clause, (rank, test))
    return _tested_first(tables, len(rules)) if tested else _plain_first(tables, len(rules))


def _plain_first(tables: dict[int | None, _Table], miss: int) -> First:
    """For rules without tests: ranks only, the smaller ones pushed down."""
    exact, stems, anyone = _pushed_down(tables.pop(None), miss)
    exact_get = exact.get

    def first(request: Request) -> int:
        rank = exact_get(request.identity)
        if rank is not None:
            return rank
        return stems.get(_stem_of(request.identity), anyone) if stems else anyone

    if not tables:
        return first

    by_port: dict[object, _Ranks] = {port: _pushed_down(table, miss) for port, table in tables.items()}
    port_get = by_port.get

    def first_by_port(request: Request) -> int:
        rank = first(request)
        table = port_get(request.port)
        if table is None:
            return rank
        exact, stems, anyone = table
        on_port = exact.get(request.identity)
        if on_port is None:
            on_port = stems.get(_stem_of(request.identity), anyone) if stems else anyone
        return rank if rank < on_port else on_port

    return first_by_port


def _pushed_down(table: _Table, miss: int) -> _Ranks:
    anyone = table.anyone[0][0] if table.anyone else miss
    stems = {stem: min(entries[0][0], anyone) for stem, entries in table.stems.items()}
    exact: dict[object, int] = {
        identity: min(entries[0][0], stems.get(_stem_of(identity), anyone)) for identity, entries in table.exact.items()
    }
    exact[None] = anyone  # a client without an identity
    return exact, stems, anyone


def _tested_first(tables: dict[int | None, _Table], miss: int) -> First:
    """For rules of which some have tests: the entries of all widths, each list only as far as it can still win."""
    everywhere = tables.pop(None)
    port_get = tables.get

    def first(request: Request) -> int:
        best = miss
        identity = request.identity
        for table in (everywhere, port_get(request.port)):  # type: ignore[arg-type]
            if table is None:
                continue
            narrow = (table.exact.get(identity), table.stems.get(_stem_of(identity))) if identity else ()  # type: ignore[arg-type]
            for entries in (*narrow, table.anyone):
                for rank, test in entries or ():
                    if rank >= best:
                        break
                    if test is None or test(request):
                        best = rank
                        break
        return best

    return first


def _stem_of(identity: object) -> str:
    """What stands before `/sa/<name>` of an identity of that form; otherwise something that no stem equals."""
    stem, _, name = str(identity).rpartition("/sa/")
    return stem if name and "/" not in name else ""


# Rules, as the tables want them.


def _clauses(predicate: Predicate) -> Iterator[_Clause]:
    """The alternatives of a rule: ANY of the clauses matches exactly where the predicate does."""
    match predicate:
        case Or(parts):
            for part in parts:
                yield from _clauses(part)
        case And():
            yield from _conjunction(predicate)
        case _:
            yield from _conjunction(And((predicate,)))


def _conjunction(predicate: And) -> Iterator[_Clause]:
    who: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    ports: tuple[int, ...] | None = None
    on_ports: tuple[Predicate, ...] = ()
    rest: list[Predicate] = []
    for part in _flattened(predicate):
        if who is None and (named := _who(part)) is not None:
            who = named
        elif ports is None and (numbers := _ports(part)) is not None:
            ports, on_ports = numbers, (part,)
        else:
            rest.append(part)
    exact, stems = who or ((), ())
    if (who is not None and not exact and not stems) or ports == ():
        return  # an empty list: it can never match
    if ports is not None and len(ports) * max(1, len(exact) + len(stems)) > _WIDEST_RULE:
        ports, rest = None, [*on_ports, *rest]
    yield _Clause(exact, stems, who is None, ports, tuple(rest))


def _flattened(predicate: And) -> Iterator[Predicate]:
    for part in predicate.parts:
        if isinstance(part, And):
            yield from _flattened(part)
        else:
            yield part


def _who(predicate: Predicate) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The identities and namespace stems that a part names, where it names nothing else."""
    match predicate:
        case Is(attribute, OneOf(values)) if attribute == IDENTITY:
            return tuple(str(v) for v in values), ()
        case Is(attribute, AccountsOf() as accounts) if attribute == IDENTITY:
            return (), (accounts.stem,)
        case Or(parts):
            named = [_who(part) for part in parts]
            if any(one is None for one in named):
                return None
            found = [one for one in named if one is not None]
            return tuple(v for exact, _ in found for v in exact), tuple(v for _, stems in found for v in stems)
        case _:
            return None


def _ports(predicate: Predicate) -> tuple[int, ...] | None:
    match predicate:
        case Is(attribute, OneOf(values)) if attribute == PORT:
            return tuple(v for v in values if isinstance(v, int))
        case _:
            return None


def compile_test(predicate: Predicate) -> Test:
    """A predicate as a function on requests in which everything it looks at is known or absent."""
    match predicate:
        case Is(attribute, matcher):
            return _compile_atom(attribute, matcher)
        case Not(part):
            test = compile_test(part)
            return lambda request: not test(request)
        case And(parts):
            return _compile_parts(parts, decisive=False)
        case Or(parts):
            return _compile_parts(parts, decisive=True)


def _compile_atom(attribute: Attribute, matcher: Matcher) -> Test:
    if isinstance(matcher, OneOf):
        values = matcher.values  # None is never among them, so an absent attribute needs no care
        return lambda request: request.values[attribute] in values
    contains = matcher.contains

    def test(request: Request) -> bool:
        value = request.values[attribute]
        return value is not None and contains(value)

    return test


def _compile_parts(parts: Sequence[Predicate], *, decisive: bool) -> Test:
    """And (decisive False) or Or (decisive True)."""
    tests = tuple(compile_test(part) for part in parts)
    if len(tests) == 1:
        return tests[0]

    def test(request: Request) -> bool:
        for one in tests:
            if one(request) is decisive:
                return decisive
        return not decisive

    return test
