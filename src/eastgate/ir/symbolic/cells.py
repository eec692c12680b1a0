"""Cells of attributes: sets of values that no atom distinguishes, each represented by one value.

An attribute has endlessly many values, but rules compare it with only a few. So its values form finitely many cells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from itertools import count, product
from math import prod
from typing import Final, Protocol, TypeVar

from eastgate.basics.caching import SizedCache
from eastgate.ir import (
    ALWAYS,
    NEVER,
    AccountsOf,
    AnyAccount,
    Between,
    Computed,
    InNetwork,
    Is,
    Known,
    Labelled,
    Matcher,
    OneOf,
    Predicate,
    Prefix,
    Suffix,
    conjuncts,
    labels_text,
)
from eastgate.ir.attributes import ADDRESSES, APPLICATION, PATHS, PORT, TRANSPORT, VICINITY, Attribute
from eastgate.ir.paths import is_refused
from eastgate.ir.spiffe import has_accounts_path, service_account_id
from eastgate.ir.symbolic.simplify import both
from eastgate.ir.symbolic.trees import DecisionNode, Entry, Tree

# Decision trees as short decision lists, for output and comparison: the FIRST entry whose condition holds decides.
#
# A list is built from the leaves of a tree backwards. Entries that no request can reach are removed on the way.


_MAX_ENTRIES = 400
MAX_COMPARED_ENTRIES = 120  # entries that are compared with each other


class TooManyEntries(Exception):  # noqa: N818 - an answer: too long to read
    """A decision list is too long to read."""


class End(Protocol):
    """The end of a decision list. `is_unopposed`: it allows because no rule matched."""

    @property
    def allowed(self) -> bool:
        """Return whether the end allows."""

    @property
    def is_unopposed(self) -> bool:
        """Return whether the end allows because no rule matched."""


L = TypeVar("L")
E = TypeVar("E", bound=End)


def list_tree(tree: Tree[L]) -> list[Entry[L]]:
    """Return a tree as a decision list. Raises TooManyEntries."""
    return _listed(tree, {})


def _listed(tree: Tree[L], known: dict[int, list[Entry[L]]]) -> list[Entry[L]]:
    if not isinstance(tree, DecisionNode):
        return [Entry(ALWAYS, tree)]
    entries = known.get(id(tree))
    if entries is None:
        nested = [*tree.tests, (ALWAYS, tree.otherwise)]
        entries = _without_redundant(entry for when, node in nested for entry in _guarded(when, _listed(node, known)))
        known[id(tree)] = entries
    return entries


def in_sequence(lists: Sequence[Sequence[Entry[E]]], nothing: E) -> list[Entry[E]]:
    """Combine lists in order. ALL must allow, and the first denial decides. Raises TooManyEntries.

    If one list accepts and a later one ends because no rule matched, the result is the acceptance. `nothing` is the end
    for an empty sequence of lists.
    """
    rest = [Entry(ALWAYS, nothing)]
    for entries in reversed(lists):
        behind = rest
        rest = _without_redundant(
            combined
            for entry in entries
            for combined in (_guarded(entry.when, _accepted(behind, entry.end)) if entry.end.allowed else [entry])
        )
    return rest


def in_order(cases: Iterable[tuple[Predicate, Sequence[Entry[L]]]]) -> list[Entry[L]]:
    """Combine lists: the FIRST list whose condition holds decides. Raises TooManyEntries."""
    return _without_redundant(entry for when, entries in cases for entry in _guarded(when, entries))


def _accepted(entries: Iterable[Entry[E]], by: E) -> list[Entry[E]]:
    return [Entry(when, by) if end.is_unopposed else Entry(when, end) for when, end in entries]


def _guarded(when: Predicate, entries: Sequence[Entry[L]]) -> Sequence[Entry[L]]:
    if when == NEVER:
        return []
    return entries if when == ALWAYS else [Entry(both((when, inner)), end) for inner, end in entries]


def _without_redundant(entries: Iterable[Entry[L]]) -> list[Entry[L]]:
    """Return the entries without unreachable ones, and without entries that the last one makes redundant."""
    kept: list[Entry[L]] = []
    sets: list[frozenset[Predicate]] = []
    for entry in entries:
        if entry.when == NEVER:
            continue
        asked = frozenset(conjuncts(entry.when))
        if len(kept) <= MAX_COMPARED_ENTRIES and any(other <= asked for other in sets):
            continue
        kept.append(entry)
        sets.append(asked)
        if entry.when == ALWAYS:
            break
        if len(kept) > _MAX_ENTRIES:
            raise TooManyEntries
    while len(kept) > 1 and kept[-2].end == kept[-1].end:
        del kept[-2]
    return kept


_MAX_CELLS = 20_000  # cells of one attribute
_LAST_PORT = 65_535
_AFTER_LOOPBACK_4, _AFTER_LOOPBACK_6 = int(IPv4Address("128.0.0.0")), int(IPv6Address("::2"))
_ENUMERATED: Mapping[Attribute, tuple[Known, ...]] = {
    APPLICATION: ("bytes", "http"),
    TRANSPORT: ("TCP", "UDP", "SCTP"),
    VICINITY: (None, "itself", "node"),
}
"""All values of the attributes that have only a few values."""
OTHER = "\N{MIDDLE DOT}other\N{MIDDLE DOT}"  # a text that no policy contains


def cells_of_attributes(
    deciding: Iterable[Is | Computed], unknown: Iterable[Attribute]
) -> tuple[dict[Attribute, list[Known]], bool]:
    """Return values of each cell, and whether these are all cells. An attribute with too many cells gets only a few."""
    matchers: dict[Attribute, list[Matcher]] = defaultdict(list)
    for atom in deciding:
        if isinstance(atom, Is):
            matchers[atom.attribute].append(atom.matcher)
    cells: dict[Attribute, list[Known]] = {}
    every = True
    for attribute in unknown:
        about = matchers[attribute]
        starts = {m for m in about if isinstance(m, Prefix | AccountsOf)}
        ends = {m for m in about if isinstance(m, Suffix)}
        labels = prod(len(values) + 2 for values in _labels_compared(about).values())
        too_many = (len(starts) + 1) * (len(ends) + 1) > _MAX_CELLS or labels > _MAX_CELLS
        every = every and not too_many
        cells[attribute] = ["" if labels > 1 else OTHER, None] if too_many else representatives(attribute, about)
    return cells, every


def representatives(attribute: Attribute, matchers: list[Matcher]) -> list[Known]:
    """Return one value of each cell. The value that no policy names is the first, because it is denied most often."""
    if attribute in _ENUMERATED:
        return list(_ENUMERATED[attribute])
    if any(isinstance(matcher, Labelled) for matcher in matchers):
        compared = tuple((key, tuple(sorted(values))) for key, values in sorted(_labels_compared(matchers).items()))
        return [*_LABELS.get(compared, lambda: _combined(compared)), None]
    if attribute == PORT:
        return list(_ports(matchers))
    if any(isinstance(m, InNetwork) for m in matchers):
        addresses: list[Known] = list(_addresses(m for m in matchers if isinstance(m, InNetwork)))
        return addresses if attribute in ADDRESSES else [None, *addresses]
    texts = _texts(matchers)
    if attribute in PATHS:  # a path that is always refused shows nothing about a policy
        texts = (text for text in texts if not is_refused(text))
    return list(dict.fromkeys([OTHER, None, *texts]))


def _ports(matchers: list[Matcher]) -> Iterator[int]:
    ports = ports_named(matchers)
    free = free_port(ports)
    yield from () if free is None else (free,)
    yield from sorted(ports)


def ports_named(matchers: Iterable[Matcher]) -> set[int]:
    """Return every port that a matcher names. For a range, return its ends and the ports next to them."""
    ports: set[int] = set()
    for matcher in matchers:
        if isinstance(matcher, OneOf):
            ports |= {value for value in matcher.values if isinstance(value, int)}
        elif isinstance(matcher, Between):
            edges = (matcher.first - 1, matcher.first, matcher.last, matcher.last + 1)
            ports |= {port for port in edges if 1 <= port <= _LAST_PORT}
    return ports


def free_port(ports: Iterable[int]) -> int | None:
    """Return the first port that is not among these, or None if all are."""
    taken = set(ports)
    return next((port for port in range(1, 65536) if port not in taken), None)


def _labels_compared(matchers: Iterable[Matcher]) -> dict[str, set[str]]:
    """Return the values of labels that selectors compare, by key."""
    compared: dict[str, set[str]] = defaultdict(set)
    for selector in (matcher.selector for matcher in matchers if isinstance(matcher, Labelled)):
        for key, value in selector.match_labels:
            compared[key].add(value)
        for requirement in selector.expressions:
            compared[requirement.key] |= requirement.values
    return compared


_Compared = tuple[tuple[str, tuple[str, ...]], ...]
_LABELS: Final[SizedCache[_Compared, tuple[str, ...]]] = SizedCache(1 << 16)
"""Combinations of labels by compared values: policies compare the same labels of each workload and namespace."""


def _combined(compared: _Compared) -> tuple[tuple[str, ...], int]:
    texts = tuple(_labels(compared))
    return texts, 1 + len(texts)


def _labels(compared: _Compared) -> Iterator[str]:
    """Yield all label combinations that selectors distinguish. Each label is absent, a compared value, or another."""
    choices = [[None, OTHER, *values] for _, values in compared]
    for values in product(*choices):
        chosen = zip((key for key, _ in compared), values, strict=True)
        yield labels_text({key: value for key, value in chosen if value is not None})


def _texts(matchers: list[Matcher]) -> Iterator[str]:
    """Yield each exact text, and for each prefix and suffix a text with both and only new letters between them.

    The longest prefix of a text decides which prefixes match it, and the longest suffix decides which suffixes match.
    So prefix + new letters + suffix represents every text with this longest prefix and this longest suffix.
    """
    for matcher in matchers:
        if isinstance(matcher, OneOf):
            yield from (str(v) for v in sorted(matcher.values, key=str))
    ends = [m.text for m in matchers if isinstance(m, Suffix)]
    starts = {"": OTHER, **{m.text: OTHER for m in matchers if isinstance(m, Prefix)}}
    accounts = [m for m in matchers if isinstance(m, AccountsOf)]
    if accounts:
        fresh = _account_name(matchers)
        starts |= {m.prefix: fresh for m in accounts}
    for matcher in matchers:
        if isinstance(matcher, AnyAccount):
            yield service_account_id(matcher.trust_domain, name := _account_name(matchers), name)
    for start, other in starts.items():
        for end in ["", *ends]:
            yield start + other + end
            if start and (end or has_accounts_path(start)):
                yield start + end  # a service account whose whole name is the suffix
                yield f"{start}{OTHER}/{OTHER}{end}"  # deeper than a service account


def _account_name(matchers: Iterable[Matcher]) -> str:
    """Return a valid account name that no policy contains."""
    exact = [str(v) for m in matchers if isinstance(m, OneOf) for v in m.values]
    return next(name for name in map("_other{}_".format, count()) if not any(name in text for text in exact))


def _addresses(matchers: Iterable[InNetwork]) -> Iterator[str]:
    """Yield the first address of each range between two edges of networks.

    No network distinguishes the addresses of a range. Loopback addresses are left out: such a caller is the workload
    itself, and a question names it so.
    """
    edges: dict[type[IPv4Address] | type[IPv6Address], set[int]] = {
        IPv4Address: {0, _AFTER_LOOPBACK_4},
        IPv6Address: {0, _AFTER_LOOPBACK_6},
    }
    for network in (n for m in matchers for n in m.networks):
        kind = type(network.network_address)
        edges[kind] |= {int(network.network_address), int(network.broadcast_address) + 1}
    for kind, starts in edges.items():
        limit = 2 ** kind(0).max_prefixlen
        addresses = (kind(start) for start in sorted(starts) if start < limit)
        yield from (str(address) for address in addresses if not address.is_loopback)
