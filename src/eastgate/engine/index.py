"""Which of many rules matches first: found in a few dictionary look-ups, however many rules there are.

Nearly every rule says who (exact identities, or all accounts of a namespace) and on which ports. So rules are filed
by identity, and there by port:

    exact identity  ->  what is said, or  port -> what is said
    namespace stem  ->  the same
    everybody       ->  the same

Each rule says something, and the first that matches is heard. What is said to many is pushed down to the few when the
table is built, so the narrowest entry that a request finds is final.

Where rules ask for more than that (paths, methods), or pushing down would cost too much, each entry is a list of
rules in order instead, with their conditions; the lists of all widths are searched, each only as far as it can win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from eastgate.engine.clauses import Clause, clauses
from eastgate.engine.conditions import Condition, compile_condition
from eastgate.policy import And, Is, OneOf, Predicate, Request
from eastgate.policy.attributes import PORT

__all__ = ["Lookup", "Table", "build_lookup", "build_table"]

Lookup = Callable[[Request], int]

_Ports = dict[object, int]  # what is said on each port, and under None on all others
_Entry: TypeAlias = int | _Ports
_Ranked: TypeAlias = tuple[int, Clause]  # the place of a rule in the order, and one alternative of it


@dataclass(slots=True)
class _Filed:
    """Clauses by whom they name, each list in the order of the rules."""

    exact: dict[object, list[_Ranked]] = field(default_factory=dict)
    stems: dict[str, list[_Ranked]] = field(default_factory=dict)
    anyone: list[_Ranked] = field(default_factory=list)
    plain: bool = True  # no clause asks for more than identity and port
    size: int = 0

    @classmethod
    def of(cls, rules: Iterable[Predicate]) -> _Filed:
        filed = cls()
        for rank, predicate in enumerate(rules):
            for clause in clauses(predicate):
                filed._add((rank, clause))
        return filed

    def _add(self, ranked: _Ranked) -> None:
        who, _, rest = ranked[1]
        self.plain = self.plain and not rest
        if who is None:
            self.anyone.append(ranked)
            return
        for identity in who.exact:
            self.size += 1
            self.exact.setdefault(identity, []).append(ranked)
        for stem in who.stems:
            self.size += 1
            self.stems.setdefault(stem, []).append(ranked)


# Tables


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What is said to whom on which port. `unknown` answers where either is not known."""

    exact: dict[object, _Entry]
    stems: dict[str, _Entry]
    anyone: _Entry
    unknown: Lookup

    def find(self, request: Request) -> int:
        """What the first rule that matches says."""
        if request.open:
            return self.unknown(request)
        identity = request.identity
        said = self.exact.get(identity)
        if said is None:
            # A client without identity is filed under exact, and so is each stem with nothing behind its slash.
            said = self.stems.get(identity.rpartition("/")[0]) if self.stems else None  # type: ignore[union-attr]
            if said is None:
                said = self.anyone
        if said.__class__ is int:
            return said  # type: ignore[return-value]
        on_port = said.get(request.port)  # type: ignore[union-attr]
        return said[None] if on_port is None else on_port  # type: ignore[index]


class _TooLarge(Exception):  # noqa: N818 - it is not an error
    """Pushing down would cost more than it is worth."""


def build_table(rules: Sequence[Predicate], says: Sequence[int], unknown: Lookup) -> Table | None:
    """A table in which rule i says `says[i]`, and where none matches the last; None where no table can hold them."""
    filed = _Filed.of(rules)
    return _table(filed, says, unknown) if filed.plain else None


def _table(filed: _Filed, says: Sequence[int], unknown: Lookup) -> Table | None:
    building = _Building(says, room=4096 + 16 * filed.size)
    nothing: _Ports = {None: len(says) - 1}
    try:
        anyone = building.push_down(nothing, filed.anyone)
        stems = {stem: building.push_down(anyone, ranked) for stem, ranked in filed.stems.items()}
        exact: dict[object, _Ports] = {f"{stem}/": anyone for stem in stems}  # no account of a stem: it has no name
        exact[None] = anyone  # a client without an identity
        for identity, ranked in filed.exact.items():
            stem, _, name = str(identity).rpartition("/")
            wider = stems.get(stem, anyone) if stems and name else anyone
            exact[identity] = building.push_down(wider, ranked)
    except _TooLarge:
        return None
    said = building.said
    return Table(
        {identity: said(ranks) for identity, ranks in exact.items()},
        {stem: said(ranks) for stem, ranks in stems.items()},
        said(anyone),
        unknown,
    )


@dataclass(slots=True)
class _Building:
    """The entries of a table while it is built. Equal ones are made once: the callers that a rule lists share theirs."""

    says: Sequence[int]
    room: int  # for this many ranks on ports
    _ranks: dict[tuple[int, ...], _Ports] = field(default_factory=dict)
    _said: dict[int, _Entry] = field(default_factory=dict)

    def push_down(self, wider: _Ports, narrower: list[_Ranked]) -> _Ports:
        """The ranks that win on each port, of a wider entry and the rules of a narrower one."""
        key = (id(wider), *map(id, narrower))
        found = self._ranks.get(key)
        if found is None:
            found = self._ranks[key] = _winners(wider, narrower, self.room)
            self.room -= len(found)
        return found

    def said(self, ranks: _Ports) -> _Entry:
        """What these ranks say."""
        found = self._said.get(id(ranks))
        if found is None:
            says = self.says
            found = {port: says[rank] for port, rank in ranks.items()} if len(ranks) > 1 else says[ranks[None]]
            self._said[id(ranks)] = found
        return found


def _winners(wider: _Ports, narrower: list[_Ranked], room: int) -> _Ports:
    won = dict(wider)
    elsewhere = won[None]
    for rank, (_, ports, _) in narrower:
        if rank > elsewhere:
            break
        if ports is None:
            won = {port: other for port, other in won.items() if other < rank}
            won[None] = rank
            break
        if len(won) + len(ports) > room:
            raise _TooLarge
        for port in ports:
            if rank < won.get(port, elsewhere):
                won[port] = rank
    return won


# Lists


def build_lookup(rules: Sequence[Predicate], says: Sequence[int]) -> Lookup:
    """The same for any rules, on requests of which identity and port are known."""
    filed = _Filed.of(rules)
    table = _table(filed, says, _never) if filed.plain else None
    return table.find if table is not None else _search(filed, says)


def _never(request: Request) -> int:
    raise AssertionError(request)


_Rules: TypeAlias = list[tuple[int, Condition | None]]


def _search(filed: _Filed, says: Sequence[int]) -> Lookup:
    exact = {identity: _conditional(ranked) for identity, ranked in filed.exact.items()}
    stems = {stem: _conditional(ranked) for stem, ranked in filed.stems.items()}
    anyone = _conditional(filed.anyone)
    miss = len(says) - 1

    def find(request: Request) -> int:
        identity = request.identity
        best = _first(exact.get(identity), request, miss)
        if stems and isinstance(identity, str) and not identity.endswith("/"):
            best = _first(stems.get(identity.rpartition("/")[0]), request, best)
        return says[_first(anyone, request, best)]

    return find


def _first(rules: _Rules | None, request: Request, best: int) -> int:
    for rank, condition in rules or ():
        if rank >= best:
            break
        if condition is None or condition(request):
            return rank
    return best


def _conditional(ranked: list[_Ranked]) -> _Rules:
    return [(rank, _condition(clause)) for rank, clause in ranked]


def _condition(clause: Clause) -> Condition | None:
    parts = [Is(PORT, OneOf(clause.ports)), *clause.rest] if clause.ports is not None else clause.rest
    return compile_condition(And(tuple(parts))) if parts else None
