"""Tables, for rules that read only the caller and the port: at most three look-ups for any number of rules.

    exact identity  ->  verdict, or  port -> verdict
    (stem,)         ->  the same, for all accounts of a namespace
    any caller      ->  the same

The first rule that matches decides. When the table is built, the results of rules for many callers are copied to the
entries for few callers. So the narrowest entry for a request is final. The speed of large tables depends on cache
misses. So a table is itself a dictionary with all callers in it, which saves one miss. No identity equals a stem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.engine.clauses import Clause, ClausesByCaller
from eastgate.ir import Request
from eastgate.ir.spiffe import accounts_path_of

_BASE_RANKS = 4096  # a table may have 16 more for each caller that a rule names

_ByPort = dict[object, int]  # None is the key for all other ports
_Entry: TypeAlias = int | _ByPort


class VerdictTable(dict[object, _Entry]):
    """Verdicts by identity and port. `unknown` decides if one of them is unknown."""

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


def build_table(
    filed: ClausesByCaller, results: Sequence[int], unknown: Callable[[Request], int]
) -> VerdictTable | None:
    """Return a table. The result of rule i is `results[i]`; the last one is for no match.

    Return None if rules read more attributes, or if the table would be too large: many callers, and many ports for all.
    """
    if not filed.plain:
        return None
    entries = _Entries(results, room=_BASE_RANKS + 16 * filed.entries)
    try:
        anyone = entries.narrowed(({None: len(results) - 1}, results[-1]), filed.anyone)
        stems = {stem: entries.narrowed(anyone, clauses) for stem, clauses in filed.stems.items()}
        table = VerdictTable(anyone[1], unknown, has_stems=bool(stems))
        for stem, (_, entry) in stems.items():
            table[stem,] = entry
        for identity, clauses in filed.exact.items():
            wider = anyone
            if stems:
                wider = stems.get(accounts_path_of(str(identity)) or "", anyone)
            table[identity] = entries.narrowed(wider, clauses)[1]
    except _TableTooLarge:
        return None
    return table


class _TableTooLarge(Exception):  # noqa: N818 - not an error
    """The table would be too large."""


@dataclass(slots=True)
class _Entries:
    """The entries of a table while it is built, each with its ranks. The callers of a rule share an entry."""

    results: Sequence[int]
    room: int  # the number of ranks that may still be added
    _made: dict[tuple[int, ...], tuple[_ByPort, _Entry]] = field(default_factory=dict)

    def narrowed(self, wider: tuple[_ByPort, _Entry], clauses: list[Clause]) -> tuple[_ByPort, _Entry]:
        """Combine a wider entry with the rules of a narrower one. On each port, the first rule decides."""
        if not clauses:
            return wider
        key = (id(wider), *map(id, clauses))
        made = self._made.get(key)
        if made is None:
            ranks = _first_ranks(wider[0], clauses, self.room)
            self.room -= len(ranks)
            results = self.results
            entry = {port: results[rank] for port, rank in ranks.items()} if len(ranks) > 1 else results[ranks[None]]
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
            raise _TableTooLarge
        for port in ports:
            if rank < first.get(port, elsewhere):
                first[port] = rank
    if len(first) > room:
        raise _TableTooLarge
    return first
