"""Tables, for rules that ask only who and on which port: at most three look-ups, however many rules there are.

    exact identity  ->  verdict, or  port -> verdict
    (stem,)         ->  the same, for all accounts of a namespace
    everybody       ->  the same

Each rule says something, and the first that matches is heard. What is said to many is pushed down to the few when
the table is built, so that the narrowest entry that a request finds is final. Large tables are bound by cache
misses, so a table is a dictionary itself, which saves one, with all callers in it; no identity can be mistaken for a
stem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.engine.clauses import Clause, Filed
from eastgate.ir import Request
from eastgate.ir.spiffe import accounts_path_of

_ROOM = 4096  # ranks that a table may hold, and 16 more for each caller that a rule names

_ByPort = dict[object, int]  # and under None, what holds on all other ports
_Entry: TypeAlias = int | _ByPort


class VerdictTable(dict[object, _Entry]):
    """Verdicts by identity and port. `unknown` decides where either is unknown."""

    __slots__ = ("anyone", "has_stems", "unknown")

    def __init__(self, anyone: _Entry, unknown: Callable[[Request], int], *, has_stems: bool) -> None:
        super().__init__({None: anyone})  # a client without an identity
        self.anyone = anyone
        self.has_stems = has_stems
        self.unknown = unknown

    def find(self, request: Request) -> int:
        """Return the verdict of the first rule that matches."""
        if request.incomplete:
            return self.unknown(request)
        identity = request.identity
        entry = self.get(identity)
        if entry is None:
            entry = self.anyone
            if self.has_stems:
                entry = self.get((accounts_path_of(identity),), entry)  # type: ignore[arg-type]
        if isinstance(entry, int):
            return entry
        on_port = entry.get(request.port)
        return entry[None] if on_port is None else on_port


def build_table(filed: Filed, says: Sequence[int], unknown: Callable[[Request], int]) -> VerdictTable | None:
    """Build a table in which rule i says `says[i]`, and where none matches the last.

    None where rules ask for more, or where pushing down would cost too much: many callers, and many ports for all.
    """
    if not filed.plain:
        return None
    entries = _Entries(says, room=_ROOM + 16 * filed.entries)
    try:
        anyone = entries.narrowed(({None: len(says) - 1}, says[-1]), filed.anyone)
        stems = {stem: entries.narrowed(anyone, clauses) for stem, clauses in filed.stems.items()}
        table = VerdictTable(anyone[1], unknown, has_stems=bool(stems))
        for stem, (_, entry) in stems.items():
            table[stem,] = entry
        for identity, clauses in filed.exact.items():
            wider = anyone
            if stems:
                wider = stems.get(accounts_path_of(str(identity)) or "", anyone)
            table[identity] = entries.narrowed(wider, clauses)[1]
    except _NoRoom:
        return None
    return table


class _NoRoom(Exception):  # noqa: N818 - it is not an error
    """The table would be too large."""


@dataclass(slots=True)
class _Entries:
    """The entries of a table while it is built, each with the ranks behind it. The callers of a rule share theirs."""

    says: Sequence[int]
    room: int  # for this many ranks
    _made: dict[tuple[int, ...], tuple[_ByPort, _Entry]] = field(default_factory=dict)

    def narrowed(self, wider: tuple[_ByPort, _Entry], clauses: list[Clause]) -> tuple[_ByPort, _Entry]:
        """Combine a wider entry with the rules of a narrower one: on each port, the first of them."""
        if not clauses:
            return wider
        key = (id(wider), *map(id, clauses))
        made = self._made.get(key)
        if made is None:
            ranks = _first_ranks(wider[0], clauses, self.room)
            self.room -= len(ranks)
            says = self.says
            entry = {port: says[rank] for port, rank in ranks.items()} if len(ranks) > 1 else says[ranks[None]]
            made = self._made[key] = (ranks, entry)
        return made


def _first_ranks(wider: _ByPort, clauses: list[Clause], room: int) -> _ByPort:
    first = wider.copy()
    elsewhere = first[None]
    for rank, _, ports, _ in clauses:
        if rank > elsewhere:
            break
        if ports is None:
            first = {port: other for port, other in first.items() if other < rank}
            first[None] = rank
            break
        if len(first) + len(ports) > room:
            raise _NoRoom
        for port in ports:
            if rank < first.get(port, elsewhere):
                first[port] = rank
    if len(first) > room:
        raise _NoRoom
    return first
