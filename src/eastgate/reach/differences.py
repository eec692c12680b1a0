"""Differences between two authorities: every request whose verdict changes, or the proof that there is none.

Destinations on both sides form pairs (`pairing`), and callers form cells that neither side distinguishes. For each cell
the two decision lists are compared (`opposition`). Both engines then decide an example of each difference
(`confirming`). Each part without a result or a confirmation is a doubt: then nothing is proved of all requests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from itertools import chain

from eastgate.authority.authority import Authority
from eastgate.basics.collection import no_collection
from eastgate.basics.records import strings_in
from eastgate.ir import Computed, Is, Layer, Not, OneOf, Predicate, Present, is_network, rewrite
from eastgate.ir import atoms as atoms_of
from eastgate.ir.addresses import is_host
from eastgate.ir.attributes import HOST, METHOD, PATH, SNI, Attribute
from eastgate.ir.authorizers import Authorizer, AuthorizerName, ExternalAuthorizer
from eastgate.ir.paths import DECODED, is_sensitive
from eastgate.ir.symbolic.cells import TooManyEntries
from eastgate.ir.symbolic.judging import is_about_path
from eastgate.ir.symbolic.stages import is_answer
from eastgate.ir.symbolic.trees import Entry
from eastgate.ir.symbolic.witnesses import GaveUp
from eastgate.reach.alike import are_alike
from eastgate.reach.caller_sets import CallerSet, CallerSets
from eastgate.reach.comparison import AuthorityComparison, ComparisonDoubt, DoubtReason, VerdictDifference
from eastgate.reach.confirming import Confirmer
from eastgate.reach.destinations import Entrance
from eastgate.reach.endings import Branch, Spelling
from eastgate.reach.hosts import differing_hosts
from eastgate.reach.network_differences import TooManyConnections, differing_connection
from eastgate.reach.numbering import caller_atoms, number_callers
from eastgate.reach.opposition import Opposition, oppositions
from eastgate.reach.pairing import Pair, Pairing, go_on, pair_destinations, pair_workloads
from eastgate.reach.reachability import Reachability

_BEFORE = " (before)"  # marks the answer of a changed authorizer on the old side


def compare(
    old: Authority,
    new: Authority,
    among: Container[str] | None = None,
    *,
    spellings: bool = True,
    handshakes: bool = True,
) -> AuthorityComparison:
    """Compare two authorities with the same settings, or at least with the same names of callers.

    `among`: compare only these of the workloads. `spellings` False: ignore paths and hosts that proxies may refuse
    under any policy. `handshakes` False: at listeners without TLS, no request has a server name.
    """
    return compare_pairs(pair_authorities(old, new, among), spellings=spellings, handshakes=handshakes)


def pair_authorities(
    old: Authority,
    new: Authority,
    among: Container[str] | None = None,
    *,
    known: Iterable[str] = (),
    namespaces: Iterable[str] = (),
    is_late: Callable[[], bool] = go_on,
    skips_network: bool = False,
) -> AuthorityComparison:
    """Return the pairs of two authorities to compare. No request is compared yet.

    `known` and `namespaces`: identities, and namespaces of accounts, with their own cells. `is_late` is called many
    times and tells whether to stop. `skips_network`: if network policies are the same on both sides, they are only
    considered in examples, and differences that they hide may be doubts.
    """
    with no_collection():
        pairing = pair_destinations(old, new, among, is_late, skips_network=skips_network)
        return AuthorityComparison(old, new, pairing, _callers(old, new, pairing, known, namespaces), (), ())


def pair_some_workloads(
    old: Authority,
    new: Authority,
    keys: Collection[str],
    *,
    same_network: bool,
    known: Iterable[str] = (),
    namespaces: Iterable[str] = (),
    is_late: Callable[[], bool] = go_on,
) -> AuthorityComparison:
    """Return the pairs of some workloads, and of nothing else.

    `same_network`: network policies are the same on both sides, so that only examples consider them.
    """
    with no_collection():
        pairing = pair_workloads(old, new, keys, same_network=same_network, is_late=is_late)
        return AuthorityComparison(old, new, pairing, _callers(old, new, pairing, known, namespaces), (), ())


def compare_pairs(
    paired: AuthorityComparison,
    *,
    spellings: bool = True,
    handshakes: bool = True,
    is_late: Callable[[], bool] = go_on,
    beside: bool = True,
) -> AuthorityComparison:
    """Compare the requests to all pairs. If `is_late` returns True, the rest is a doubt.

    `beside` False: leave out doubts that no comparison of policies can resolve.
    """
    old, new, pairing = paired.old, paired.new, paired.pairing
    with no_collection():
        comparing = _Comparing(old, new, pairing, paired.callers, is_late, spellings=spellings, handshakes=handshakes)
        return _compare(comparing, old, new, _other_doubts(old, new, pairing) if beside else ())


def has_shared_server_or_tokens(pair: Pair) -> bool:
    """Return whether the verdict on requests to a pair may differ for a reason other than a rule of a policy."""
    return any(any(map(_shares_server, each)) or _do_derivations_differ(*each) for each in pair.entrances)


def _callers(
    old: Authority, new: Authority, pairing: Pairing, known: Iterable[str], namespaces: Iterable[str]
) -> CallerSets:
    layers = chain.from_iterable(pair.layers for pair in pairing.pairs)
    return number_callers((old, new), layers, known, namespaces)


def _compare(
    comparing: _Comparing, old: Authority, new: Authority, more_doubts: Iterable[ComparisonDoubt] = ()
) -> AuthorityComparison:
    pairing = comparing.pairing
    differences = tuple(chain.from_iterable(map(comparing.differences, pairing.pairs)))
    confirmed = tuple(difference for difference in differences if difference.confirmation is not None)
    unconfirmed = [difference for difference in differences if difference.confirmation is None]
    doubts = [*comparing.doubts, *map(comparing.doubt, unconfirmed), *more_doubts]
    if pairing.is_late or comparing.was_late:
        doubts.append(ComparisonDoubt(DoubtReason.TIME, ""))
    return AuthorityComparison(old, new, pairing, comparing.callers, confirmed, tuple(doubts))


def _other_doubts(old: Authority, new: Authority, pairing: Pairing) -> Iterator[ComparisonDoubt]:
    """Yield the doubts that no comparison of readable policies can resolve."""
    rejected = dict.fromkeys(str(policy.ref) for authority in (old, new) for policy in authority.rejected)
    yield from (ComparisonDoubt(DoubtReason.REJECTED, name) for name in rejected)
    yield from (ComparisonDoubt(DoubtReason.LABELS, key) for key in pairing.uncertain)
    yield from (ComparisonDoubt(DoubtReason.HOST, host) for host in differing_hosts(old, new))
    if pairing.same_network or pairing.is_late:
        return
    try:
        connection = differing_connection(old, new)
    except TooManyConnections:
        yield ComparisonDoubt(DoubtReason.TOO_MANY, "UDP, SCTP and egress under network policies")
    else:
        if connection is not None:
            yield ComparisonDoubt(DoubtReason.NETWORK, connection)


class _Comparing:
    def __init__(
        self,
        old: Authority,
        new: Authority,
        pairing: Pairing,
        callers: CallerSets,
        is_late: Callable[[], bool],
        *,
        spellings: bool,
        handshakes: bool,
    ) -> None:
        self.pairing = pairing
        self.callers = callers
        self.was_late = False
        self._is_late = is_late
        self.doubts: list[ComparisonDoubt] = []
        self._has_handshakes = handshakes
        self._spells = spellings
        self._known_spellings: dict[tuple[int, ...], tuple[Spelling, ...]] = {}
        self._old = Reachability(old, callers=callers, is_late=is_late)
        self._new = Reachability(new, callers=callers, is_late=is_late)
        self._schemes, changed = _schemes(old, new, pairing)
        renamed = {f"{name}{_BEFORE}" for name in self._schemes}
        self._confirmer = Confirmer(old, new, self._schemes | renamed, _issuers(changed))

    def doubt(self, difference: VerdictDifference) -> ComparisonDoubt:
        """Return the doubt for a difference without confirmation."""
        for attribute in difference.request.values:
            name = attribute.key.removesuffix(_BEFORE)
            if is_answer(attribute) and name in self._schemes:
                return ComparisonDoubt(DoubtReason.SCHEME, name, difference)
        return ComparisonDoubt(DoubtReason.NOT_CONFIRMED, _name(difference.pair), difference)

    def differences(self, pair: Pair) -> Iterator[VerdictDifference]:
        """Yield the differences of a pair, and record the doubts."""
        for was, now in pair.entrances:
            if self._spells and any(map(_shares_server, (was, now))):
                self._record_doubt(DoubtReason.SHARED_SERVER, pair)
            if _do_derivations_differ(was, now):
                self._record_doubt(DoubtReason.DERIVED, pair)
            for callers, spelling, old, new in self._lists(pair, was, now):
                self.was_late = self.was_late or self._is_late()
                if self.was_late:
                    return
                if _is_same(old, new):
                    continue
                cell = next(self.callers.cells_in(callers))
                limits = list(_impossible(spelling, (was, now)))
                if not self._has_handshakes and was.tls is False and now.tls is False:
                    limits.append(Is(SNI, Present()))
                for opposed in self._oppositions(pair, old, new, limits):
                    confirmed = self._confirmer.confirm(
                        pair, now, cell, opposed.request, spelling, now_allowed=opposed.new.allowed
                    )
                    yield VerdictDifference(
                        pair,
                        now,
                        callers,
                        opposed.when,
                        spelling,
                        opposed.old,
                        opposed.new,
                        opposed.request,
                        confirmed,
                    )

    def _oppositions(
        self, pair: Pair, old: Sequence[Branch], new: Sequence[Branch], limits: Sequence[Predicate]
    ) -> Iterator[Opposition]:
        try:
            yield from oppositions(old, new, limits)
        except GaveUp:
            self._record_doubt(DoubtReason.TOO_MANY, pair)

    def _record_doubt(self, reason: DoubtReason, pair: Pair) -> None:
        name = _name(pair)
        if not any(doubt.reason is reason and doubt.subject == name for doubt in self.doubts):
            self.doubts.append(ComparisonDoubt(reason, name))

    def _lists(
        self, pair: Pair, was: Entrance, now: Entrance
    ) -> Iterator[tuple[CallerSet, Spelling, Sequence[Branch], Sequence[Branch]]]:
        """Yield the two decision lists of all callers, for every relevant spelling."""
        for before in self._old.answers(was):
            for after in self._new.answers(now):
                callers = before.callers & after.callers
                if not callers:
                    continue
                self.was_late = self.was_late or self._is_late()
                if self.was_late:
                    return
                if before.too_many or after.too_many:
                    self._record_doubt(DoubtReason.TOO_MANY, pair)
                else:
                    yield callers, Spelling.PLAIN, self._renamed(before.branches), after.branches
        layers = (*was.layers, *now.layers)
        if not self._spells or was.hides_http or now.hides_http:
            return
        spellings = self._spellings_of(layers)
        if not spellings:
            return
        for alike in self.callers.alike(self.callers.everybody, caller_atoms(layers)):
            cell = next(self.callers.cells_in(alike))
            for spelling in spellings:
                try:
                    old = self._old.branches(was, cell, spelling=spelling)
                    new = self._new.branches(now, cell, spelling=spelling)
                except TooManyEntries:
                    self._record_doubt(DoubtReason.TOO_MANY, pair)
                else:
                    yield alike, spelling, self._renamed(old), new

    def _spellings_of(self, layers: Sequence[Layer]) -> tuple[Spelling, ...]:
        key = tuple(map(id, layers))  # most entrances of one workload have the same layers
        spellings = self._known_spellings.get(key)
        if spellings is None:
            spellings = self._known_spellings[key] = tuple(_spellings(layers))
        return spellings

    def _renamed(self, branches: Sequence[Branch]) -> Sequence[Branch]:
        """Return a list of the old side in which changed authorizers have answers under other names."""
        if not self._schemes:
            return branches
        return [Entry(rewrite(branch.when, self._as_before), branch.end) for branch in branches]

    def _as_before(self, atom: Is | Computed) -> Predicate:
        if isinstance(atom, Is) and is_answer(atom.attribute) and atom.attribute.key in self._schemes:
            attribute = Attribute(atom.attribute.kind, f"{atom.attribute.key}{_BEFORE}")
            return Is(attribute, atom.matcher, atom.joined)
        return atom


def _is_same(old: Sequence[Branch], new: Sequence[Branch]) -> bool:
    return len(old) == len(new) and all(
        before.end.allowed == after.end.allowed and before.when == after.when
        for before, after in zip(old, new, strict=True)
    )


def _do_derivations_differ(was: Entrance, now: Entrance) -> bool:
    return not are_alike(_dependencies(was), _dependencies(now))


def _dependencies(entrance: Entrance) -> list[object]:
    """Return the inputs of derived attributes. Derived attributes have the same names on both sides."""
    layers = (layer.derivations for layer in entrance.layers)
    return [each.depends_on for derivations in layers for each in derivations if each.depends_on is not None]


def _name(pair: Pair) -> str:
    return f"{pair.kind}:{pair.members[0]}"


# Spellings


def _shares_server(entrance: Entrance) -> bool:
    """Return whether different passages lead to one server, so that an encoded slash may take any of them."""
    layers: dict[tuple[str, ...], tuple[int, ...]] = {}
    for passage in entrance.passages:
        mine = tuple(id(layer) for point in passage.points for layer in point.layers)
        if any(layers.setdefault(server, mine) != mine for server in passage.servers):
            return True
    return False


def _spellings(layers: Sequence[Layer]) -> Iterator[Spelling]:
    """Yield the spellings of requests that a layer treats specially."""
    atoms = [atom for layer in layers for atom in layer.atoms(observed=False)]
    if any(map(is_about_path, atoms)):
        yield Spelling.ENCODED_SLASH
    if any(map(is_sensitive, atoms)):
        yield Spelling.RESPELLED
    if not all(map(is_network, layers)):
        yield Spelling.BAD_HOST


def _impossible(spelling: Spelling, entrances: tuple[Entrance, Entrance]) -> Iterator[Predicate]:
    """Yield predicates that no request with this spelling meets."""
    if spelling is Spelling.PLAIN:
        return
    asked = (atom for entrance in entrances for layer in entrance.layers for atom in layer.atoms(observed=False))
    routed = (atom for entrance in entrances for passage in entrance.passages for atom in atoms_of(passage.when))
    atoms = [atom for atom in chain(asked, routed) if isinstance(atom, Is)]
    if any(atom.attribute is METHOD for atom in atoms):
        yield Not(Is(METHOD, Present()))
    attribute = HOST if spelling is Spelling.BAD_HOST else PATH
    exact = {
        str(value)
        for atom in atoms
        if atom.attribute is attribute and isinstance(atom.matcher, OneOf)
        for value in atom.matcher.values
    }
    if spelling is Spelling.BAD_HOST:
        exact = set(filter(is_host, exact))
    if spelling is Spelling.RESPELLED:
        exact = {text for text in exact if DECODED.isdisjoint(text) and "%" not in text}
    if exact:
        yield Is(attribute, OneOf(frozenset(exact)))


# Authorizers


def _schemes(old: Authority, new: Authority, pairing: Pairing) -> tuple[frozenset[str], list[object]]:
    """Return the authorizers that may answer differently on the two sides: their names, and their configurations.

    An external authorizer counts as the same on both sides if requests to it have the same form.
    """
    entrances = [each for pair in pairing.pairs for each in pair.entrances]
    before, after = _configurations(was for was, _ in entrances), _configurations(now for _, now in entrances)
    same_secrets = old.world.secrets == new.world.secrets
    changed = []
    for name in dict.fromkeys([*before, *after]):
        was, now = before.get(name, []), after.get(name, [])
        same = are_alike(was, now)
        if any(evaluator is not None for evaluator, _ in (*was, *now)):
            changed += [] if same and same_secrets else [name]
        elif was and now and not same:
            changed.append(name)
    return frozenset(changed), [asked for side in (before, after) for name in changed for asked in side.get(name, ())]


_Configuration = tuple[Authorizer | None, ExternalAuthorizer | None]


def _configurations(entrances: Iterable[Entrance]) -> dict[str, list[_Configuration]]:
    """Return the configurations of each authorizer, by its name."""
    asked: dict[str, list[_Configuration]] = {}
    for ask in (ask for entrance in entrances for layer in entrance.layers for ask in layer.asks):
        name = ask.authorizer
        way = ask.evaluator, name.external if isinstance(name, AuthorizerName) else None
        ways = asked.setdefault(str(name), [])
        if not any(are_alike(way, known) for known in ways):
            ways.append(way)
    return asked


def _issuers(schemes: Iterable[object]) -> list[str]:
    return list(dict.fromkeys(text for scheme in schemes for text in strings_in(scheme) if text.startswith("http")))[:4]
