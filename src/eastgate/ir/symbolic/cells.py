"""Cells of attributes: values that no atom tells apart, with one value to stand for each cell.

An attribute has endlessly many values, but rules compare it with only a few, so its values fall into finitely many
cells.
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

# Decision trees as short decision lists, for people and for comparing: the FIRST entry whose condition holds decides.
#
# A list is built from the ends of a tree backwards, and what nobody can take disappears on the way.


_MOST_ENTRIES = 400
MOST_COMPARED = 120  # entries that are compared with each other


class TooManyEntries(Exception):  # noqa: N818 - it is an answer: too much to be read
    """More conditions than anybody reads."""


class End(Protocol):
    """The end of a decision list. `is_unopposed`: it allows because no rule applied."""

    @property
    def allowed(self) -> bool:
        """Return whether it allows."""

    @property
    def is_unopposed(self) -> bool:
        """Return whether it allows because no rule applied."""


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
        entries = _tidy(entry for when, node in nested for entry in _guarded(when, _listed(node, known)))
        known[id(tree)] = entries
    return entries


def in_sequence(lists: Sequence[Sequence[Entry[E]]], nothing: E) -> list[Entry[E]]:
    """Combine lists of which ALL must allow, in this order; the first denial decides. Raises TooManyEntries.

    An open end behind an acceptance is that acceptance; `nothing` is the end of no lists at all.
    """
    rest = [Entry(ALWAYS, nothing)]
    for entries in reversed(lists):
        behind = rest
        rest = _tidy(
            combined
            for entry in entries
            for combined in (_guarded(entry.when, _accepted(behind, entry.end)) if entry.end.allowed else [entry])
        )
    return rest


def in_order(cases: Iterable[tuple[Predicate, Sequence[Entry[L]]]]) -> list[Entry[L]]:
    """Combine lists of which the FIRST whose condition holds decides. Raises TooManyEntries."""
    return _tidy(entry for when, entries in cases for entry in _guarded(when, entries))


def _accepted(entries: Iterable[Entry[E]], by: E) -> list[Entry[E]]:
    return [Entry(when, by) if end.is_unopposed else Entry(when, end) for when, end in entries]


def _guarded(when: Predicate, entries: Sequence[Entry[L]]) -> Sequence[Entry[L]]:
    if when == NEVER:
        return []
    return entries if when == ALWAYS else [Entry(both((when, inner)), end) for inner, end in entries]


def _tidy(entries: Iterable[Entry[L]]) -> list[Entry[L]]:
    """Return entries without unreachable ones, and without those that the last one makes redundant."""
    kept: list[Entry[L]] = []
    sets: list[frozenset[Predicate]] = []
    for entry in entries:
        if entry.when == NEVER:
            continue
        asked = frozenset(conjuncts(entry.when))
        if len(kept) <= MOST_COMPARED and any(other <= asked for other in sets):
            continue
        kept.append(entry)
        sets.append(asked)
        if entry.when == ALWAYS:
            break
        if len(kept) > _MOST_ENTRIES:
            raise TooManyEntries
    while len(kept) > 1 and kept[-2].end == kept[-1].end:
        del kept[-2]
    return kept


_MOST_CELLS = 20_000  # of one attribute
_LAST_PORT = 65_535
_AFTER_LOOPBACK_4, _AFTER_LOOPBACK_6 = int(IPv4Address("128.0.0.0")), int(IPv6Address("::2"))
_FEW: Mapping[Attribute, tuple[Known, ...]] = {
    APPLICATION: ("bytes", "http"),
    TRANSPORT: ("TCP", "UDP", "SCTP"),
    VICINITY: (None, "itself", "node"),
}
"""All values of attributes that have few."""
OTHER = "\N{MIDDLE DOT}other\N{MIDDLE DOT}"  # a text that no policy contains


def cells_of_attributes(
    deciding: Iterable[Is | Computed], unknown: Iterable[Attribute]
) -> tuple[dict[Attribute, list[Known]], bool]:
    """Return one value of each cell, and whether that is all of them: of an attribute with too many only a few are."""
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
        too_many = (len(starts) + 1) * (len(ends) + 1) > _MOST_CELLS or labels > _MOST_CELLS
        every = every and not too_many
        cells[attribute] = ["" if labels > 1 else OTHER, None] if too_many else representatives(attribute, about)
    return cells, every


def representatives(attribute: Attribute, matchers: list[Matcher]) -> list[Known]:
    """Return one value of each cell; the value that no policy names first, since it is denied most often."""
    if attribute in _FEW:
        return list(_FEW[attribute])
    if any(isinstance(matcher, Labelled) for matcher in matchers):
        compared = tuple((key, tuple(sorted(values))) for key, values in sorted(_labels_compared(matchers).items()))
        return [*_LABELS.get(compared, lambda: _combined(compared)), None]
    if attribute == PORT:
        return list(_ports(matchers))
    if any(isinstance(m, InNetwork) for m in matchers):
        addresses: list[Known] = list(_addresses(m for m in matchers if isinstance(m, InNetwork)))
        return addresses if attribute in ADDRESSES else [None, *addresses]
    texts = _texts(matchers)
    if attribute in PATHS:  # a path that is refused whatever the policy is says nothing about the policy
        texts = (text for text in texts if not is_refused(text))
    return list(dict.fromkeys([OTHER, None, *texts]))


def _ports(matchers: list[Matcher]) -> Iterator[int]:
    ports = ports_named(matchers)
    free = free_port(ports)
    yield from () if free is None else (free,)
    yield from sorted(ports)


def ports_named(matchers: Iterable[Matcher]) -> set[int]:
    """Return every port that some matcher names; of a range its ends, and its neighbours."""
    ports: set[int] = set()
    for matcher in matchers:
        if isinstance(matcher, OneOf):
            ports |= {value for value in matcher.values if isinstance(value, int)}
        elif isinstance(matcher, Between):
            edges = (matcher.first - 1, matcher.first, matcher.last, matcher.last + 1)
            ports |= {port for port in edges if 1 <= port <= _LAST_PORT}
    return ports


def free_port(ports: Iterable[int]) -> int | None:
    """Return the first port that is not among these; None where all are."""
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
"""Combinations of labels, by what is compared: policies ask the same of each workload and each namespace."""


def _combined(compared: _Compared) -> tuple[tuple[str, ...], int]:
    texts = tuple(_labels(compared))
    return texts, 1 + len(texts)


def _labels(compared: _Compared) -> Iterator[str]:
    """Yield labels in all combinations that selectors tell apart: each is absent, one that is compared, or another."""
    choices = [[None, OTHER, *values] for _, values in compared]
    for values in product(*choices):
        chosen = zip((key for key, _ in compared), values, strict=True)
        yield labels_text({key: value for key, value in chosen if value is not None})


def _texts(matchers: list[Matcher]) -> Iterator[str]:
    """Yield each exact text; and for each prefix and suffix a text that has both and otherwise only fresh letters.

    What a text shares with prefixes is told by the longest one it has, and likewise for suffixes, so
    prefix + fresh + suffix stands for every text with that longest prefix and that longest suffix.
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
    """Return a name that an account may have and no policy contains."""
    exact = [str(v) for m in matchers if isinstance(m, OneOf) for v in m.values]
    return next(name for name in map("_other{}_".format, count()) if not any(name in text for text in exact))


def _addresses(matchers: Iterable[InNetwork]) -> Iterator[str]:
    """Yield the first address of each stretch between two edges of networks: all of a stretch are alike.

    Loopback is none of them: who calls from there is the workload itself, and a question about it says so.
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
