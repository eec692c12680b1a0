"""Unknown attributes: allow only if EVERY completion allows.

Each attribute has endlessly many values, but a layer compares it with only a few, so its values fall into
finitely many cells that the layer cannot tell apart. One value of each cell is tried. The search fixes one
attribute at a time and stops as soon as the layer's answer no longer depends on the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from itertools import count

from eastgate.engine.certainty import prove_allow
from eastgate.engine.partial import Undetermined, deciding_atoms, judge
from eastgate.engine.repeated import Repeated
from eastgate.policy import (
    AccountsOf,
    Computed,
    InNetwork,
    Is,
    Known,
    Layer,
    Matcher,
    OneOf,
    Outcome,
    Prefix,
    Refusal,
    Request,
    Suffix,
)
from eastgate.policy.attributes import ADDRESS, PATHS, PORT, Attribute
from eastgate.policy.paths import is_refused
from eastgate.policy.service_accounts import has_accounts_path

__all__ = ["OTHER", "Completion", "complete"]

# How much is tried for one layer; past it the answer is deny, because nobody knows. A try looks at every atom.
_MOST_LOOKS = 2_000_000
_FEWEST_TRIES = 1_000
_MOST_CELLS = 20_000  # of one attribute
_MOST_OTHERS = 256  # values of one attribute that are tried to see whether it matters
_AFTER_LOOPBACK_4, _AFTER_LOOPBACK_6 = int(IPv4Address("128.0.0.0")), int(IPv6Address("::2"))
OTHER = "\N{MIDDLE DOT}other\N{MIDDLE DOT}"  # a text that no policy contains


@dataclass(frozen=True, slots=True)
class Completion:
    """The outcome that stands, and what brings it about: values of unknown attributes, and tests over them.

    `telling` are those of the values that matter: with another one, the outcome would be the opposite.
    """

    outcome: Outcome
    assumed: tuple[tuple[Attribute, Known], ...] = ()
    tests: tuple[tuple[Is | Computed, bool], ...] = ()
    exhausted: bool = False
    telling: tuple[tuple[Attribute, Known], ...] = ()

    def of(self, request: Request) -> Request:
        """The request, completed so."""
        for attribute, value in self.assumed:
            request = request.with_value(attribute, value)
        return request.assuming(dict(self.tests)) if self.tests else request


def complete(layer: Layer, request: Request) -> Completion:
    """A denying completion if there is one, otherwise any."""
    deciding = list(deciding_atoms(layer))
    repeated = Repeated(deciding, request)
    unknown = [a for a in sorted(layer.looks_at) if a not in request.values and a not in repeated.attributes]
    tests: list[Is | Computed] = [
        t for t in dict.fromkeys(deciding) if isinstance(t, Computed) and not t.attributes <= request.values.keys()
    ]
    tests = [*repeated.atoms, *tests]
    budget = max(_FEWEST_TRIES, _MOST_LOOKS // (1 + len(deciding)))
    cells: dict[Attribute, list[Known]] = {}
    every = True
    first: Completion | None = None
    todo: list[tuple[Request, int]] = [(request.assuming(dict.fromkeys(tests)) if tests else request, 0)]
    while todo:
        if not budget:
            return _given_up(layer, request)
        budget -= 1
        candidate, depth = todo.pop()
        try:
            outcome = judge(layer, candidate)
        except Undetermined:
            if not cells and (unknown or repeated.attributes):
                cells, every = _cells(deciding, [*unknown, *repeated.attributes])
            if depth < len(unknown):
                attribute = unknown[depth]
                todo.extend((candidate.with_value(attribute, v), depth + 1) for v in reversed(cells[attribute]))
            else:  # a test over something unknown may come out either way
                test = tests[depth - len(unknown)]
                either = (candidate.assuming({test: held}) for held in (True, False))
                todo.extend((one, depth + 1) for one in either if repeated.is_possible(test, one, cells))
            continue
        if outcome.allowed and first is not None:
            continue
        values = tuple((a, candidate.values[a]) for a in unknown[:depth]) + repeated.values(candidate, cells)
        outcomes = tuple((test, held) for test in tests if (held := candidate.assumed[test]) is not None)
        found = Completion(outcome, values, outcomes)
        if not outcome.allowed:
            return replace(found, telling=_telling(layer, candidate, values, cells)) if values else found
        first = found
    assert first is not None  # noqa: S101 - an attribute has at least one cell
    return first if every else _given_up(layer, request)


def _telling(
    layer: Layer, denied: Request, values: tuple[tuple[Attribute, Known], ...], cells: Mapping[Attribute, list[Known]]
) -> tuple[tuple[Attribute, Known], ...]:
    return tuple(
        (attribute, value)
        for attribute, value in values
        if any(_might_allow(layer, denied.with_value(attribute, other)) for other in cells[attribute][:_MOST_OTHERS])
    )


def _might_allow(layer: Layer, request: Request) -> bool:
    try:
        return judge(layer, request).allowed
    except Undetermined:
        return True


def _given_up(layer: Layer, request: Request) -> Completion:
    """Return what can be said without trying everything."""
    proven = prove_allow(layer, request)
    if proven is not None:
        return Completion(proven)
    return Completion(Outcome(False, layer.name, None, None, Refusal.FORBIDDEN), exhausted=True)


def _cells(
    deciding: Iterable[Is | Computed], unknown: Iterable[Attribute]
) -> tuple[dict[Attribute, list[Known]], bool]:
    """The cells of each unknown attribute, and whether that is all of them: of too many only a few are tried."""
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
        too_many = (len(starts) + 1) * (len(ends) + 1) > _MOST_CELLS
        every = every and not too_many
        cells[attribute] = [OTHER, None] if too_many else _representatives(attribute, about)
    return cells, every


def _representatives(attribute: Attribute, matchers: list[Matcher]) -> list[Known]:
    """One value of each cell; the value that no policy names first, since it is denied most often."""
    if attribute == PORT:
        return list(_ports(matchers))
    if any(isinstance(m, InNetwork) for m in matchers):
        found: list[Known] = list(_addresses(m for m in matchers if isinstance(m, InNetwork)))
        return found if attribute == ADDRESS else [None, *found]  # every caller has an address
    texts = _texts(matchers)
    if attribute in PATHS:  # a path that is refused whatever the policy is says nothing about the policy
        texts = (text for text in texts if not is_refused(text))
    return list(dict.fromkeys([OTHER, None, *texts]))


def _ports(matchers: list[Matcher]) -> Iterator[int]:
    named = {v for m in matchers if isinstance(m, OneOf) for v in m.values if isinstance(v, int)}
    yield from [port for port in range(1, min(len(named) + 1, 65535) + 1) if port not in named][:1]
    yield from sorted(named)


def _texts(matchers: list[Matcher]) -> Iterator[str]:
    """Each exact text; and for each prefix and suffix a text that has both and otherwise only fresh letters.

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
    for start, other in starts.items():
        for end in ["", *ends]:
            yield start + other + end
            if start and (end or has_accounts_path(start)):
                yield start + end  # a service account whose whole name is the suffix
                yield f"{start}{OTHER}/{OTHER}{end}"  # deeper than a service account


def _account_name(matchers: Iterable[Matcher]) -> str:
    """A name that an account may have and no policy contains."""
    exact = [str(v) for m in matchers if isinstance(m, OneOf) for v in m.values]
    return next(name for name in map("_other{}_".format, count()) if not any(name in text for text in exact))


def _addresses(matchers: Iterable[InNetwork]) -> Iterator[str]:
    """The first address of each stretch between two edges of networks: all of a stretch are alike.

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
        found = (kind(start) for start in sorted(starts) if start < limit)
        yield from (str(address) for address in found if not address.is_loopback)
